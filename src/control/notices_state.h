/* The inside of notices, of the loop alone. Private to src/control. */
#ifndef ST_CONTROL_NOTICES_STATE_H
#define ST_CONTROL_NOTICES_STATE_H

#include "control/notices.h"
#include "control/state.h"

typedef struct st_noticer {
    char *key, *account, *name; /* "ACCOUNT/NAME", and its parts */
    char *by, *by_account;
    int32_t id;  /* of its account, in the core's tree */
    int32_t org; /* among those who take turns */
    uint32_t on;
    bool mine, mail;
    int64_t made_ms;
    int64_t waiting;         /* deliveries */
    int64_t missed;          /* that found no place since the last one that did */
    struct st_noticer *next; /* of the same account */
} st_noticer;

/* A delivery of the transaction that is being written. */
typedef struct st_notice_row {
    uint64_t number;
    char *key, *id, *title, *body;
    int64_t at_ms;
} st_notice_row;

/* Something that was told after a commit, on its way into a transaction. */
typedef struct st_notice_late {
    st_notice_on on;
    char *account, *title; /* title NULL: nobody is told, it is only kept that it was */
    json_t *more;          /* fields of the body */
} st_notice_late;

struct st_noticers {
    ST_VEC(st_noticer *) at; /* by account, as the core's tree numbers them: the first; NULL */
    st_map *named;           /* by key */
    size_t n;
    ST_VEC(int32_t) orgs;       /* by org: deliveries that wait */
    ST_VEC(st_notice_row) rows; /* handed out after the commit */
    ST_VEC(st_notice_late) late;
    uint64_t last;
    bool posted; /* the late ones have a command on its way */
};

/* What a delivery is about. */
typedef struct st_telling {
    st_notice_on on;
    const char *kind; /* NULL: the word of `on` */
    const char *account;
    const char *user; /* NULL: nobody's in particular */
    const char *title;
    json_t *more; /* further fields of the body; borrowed */
} st_telling;

/* notices.c */
/* The first of an account; NULL: it has none. */
st_noticer *st_notices_of(const st_control *ctl, int32_t account);
st_noticer *st_notices_find(const st_control *ctl, const char *key);
void st_notices_key(const char *account, const char *name, st_strbuf *out);
st_noticer *st_notices_add(st_control *ctl, const char *key, const json_t *doc);

/* notices_tell.c: rows for everybody who wants to know; and one for a notice itself. */
int st_notices_tell(st_tx *tx, const st_telling *t, st_err *err);
int st_notices_put(st_tx *tx, st_noticer *to, const st_telling *t, char ret_id[40], st_err *err);
void st_notices_drop_row(st_notice_row *row);
/* Whether anybody in the account or above it has one: most have none, and pay nothing. */
bool st_notices_anybody(const st_control *ctl, int32_t account);

/* notices_budget.c: what of budgets was told, behind the books; and that it is kept from now on. */
int st_notices_load_budgets(st_control *ctl, st_err *err);
int st_notices_keep_budgets(st_tx *tx, st_err *err);

#endif
