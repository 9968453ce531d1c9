/*
 * Who goes into a job, for the audit log (api/tunnels.h).
 */
#include <stdio.h>

#include "control/state.h"

static int run_tunnel(st_tx *tx, st_cmd *cmd, st_err *err)
{
    st_cmd_tunnel *c = (st_cmd_tunnel *)cmd;
    char text[ST_ID_TEXT];
    st_live *live;
    st_identity who = c->who;
    int r;

    if (c->watches) /* as it may read the job's output */
        who.role = ST_ROLE_VIEWER;
    r = st_tx_need_job(tx, &who, c->job, &live, err);
    if (r < 0)
        return r;
    snprintf(c->account, sizeof c->account, "%s", live->account);
    st_control_id_text(tx->ctl, c->job, text);
    return st_tx_audit(tx, &c->who, c->verb, live->account, text, c->detail, err);
}

void st_cmd_tunnel_init(st_cmd_tunnel *cmd)
{
    cmd->cmd.run = run_tunnel;
}
