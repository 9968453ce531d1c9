/* How a printed bill looks. */
#ifndef ST_LEDGER_EXPORT_STYLE_H
#define ST_LEDGER_EXPORT_STYLE_H

extern const char st_export_style[];

#endif
