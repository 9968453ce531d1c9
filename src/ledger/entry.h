/* The keys of an entry: one table for writing and for reading. */
#ifndef ST_LEDGER_ENTRY_H
#define ST_LEDGER_ENTRY_H

#include "ledger/ledger.h"

typedef enum st_entry_type {
    ST_E_I64,
    ST_E_INT,
    ST_E_TEXT,
    ST_E_WORD,   /* an enum, by name */
    ST_E_GRANTS, /* [["node",devs,mig_start,n],...] */
    ST_E_LINES,  /* [["burst",quantity,rate,factor,carry_in,amount,carry],...] */
    ST_E_CONTRA, /* ["#burst",...], one for each line */
    ST_E_DOC,    /* canonical JSON as it is */
} st_entry_type;

typedef struct st_entry_field {
    const char *key; /* with quotes and colon, as it is written */
    size_t nkey;
    st_entry_type type;
    size_t offset;
    uint32_t need, may; /* kinds, as bits: always there; left out when it says nothing */
    int64_t none;       /* which number says nothing */
    const char *(*word)(int value);
    int words; /* how many there are */
} st_entry_field;

extern const st_entry_field st_entry_fields[];
extern const int st_entry_nfields;

#endif
