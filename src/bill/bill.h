/* Bills and entries for others: CSV, JSON, a printable page, and the FOCUS format of cost data.
 *
 * Pure: entries and bills come in, text goes to the end of `out`. No number is ever rounded on the way but where its
 * column says so: money is an integer of micro-dollars until it is text. */
#ifndef ST_BILL_BILL_H
#define ST_BILL_BILL_H

#include "base/strbuf.h"
#include "ledger/ledger.h"
#include "ledger/text.h"

/* ---- bills -------------------------------------------------------------------------------------- */

/* What a bill does not know about itself. */
typedef struct st_export_about {
    const char *cluster, *currency, *zone;
    int64_t made_ms;            /* when this is written */
    const unsigned char *key;   /* 32 bytes: whose signature its bill file has; NULL: none yet */
    const st_idle_floors *idle; /* what st_ledger_idle_floors gives; NULL: not shown */
} st_export_about;

/* With a header line; rows end in CR LF. */
void st_export_bill_csv(const st_bill *bill, const st_export_about *about, st_strbuf *out);
void st_export_bill_json(const st_bill *bill, const st_export_about *about, st_strbuf *out);
/* A page without anything from outside, fit for paper. */
void st_export_bill_html(const st_bill *bill, const st_export_about *about, st_strbuf *out);

/* ---- entries ------------------------------------------------------------------------------------ */

/* One row per posting; entries without any have one row. */
void st_export_entries_csv_head(st_strbuf *out);
void st_export_entry_csv(const st_entry *e, st_strbuf *out);

/* ---- FOCUS 1.2 ----------------------------------------------------------------------------------- */

/* One row per posting of the entries of one bill; floors have one row for what was used and one for
 * what was not. doc/reference/bill-format.md has the table of columns and the reasons. First come all accounts of the bill, then entries, which
 * are shown twice, each time in the same order: to st_focus_learn, then to st_focus_rows. */
typedef struct st_focus st_focus;

typedef struct st_focus_about {
    const st_export_about *about;
    const st_ledger *ledger; /* is asked for prices and plans */
    const char *account;     /* whose bill it is */
    st_period period;
    bool closed, chargeback;
} st_focus_about;

st_focus *st_focus_new(const st_focus_about *about);
void st_focus_free(st_focus *f);
ST_DEFINE_FREEP(st_focus, st_focus_free)
void st_focus_account(st_focus *f, const char *account, const char *parent);
void st_focus_learn(st_focus *f, const st_entry *e);
void st_focus_head(st_strbuf *out);
void st_focus_rows(st_focus *f, const st_entry *e, st_strbuf *out);

#endif
