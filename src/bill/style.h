/* How a printed bill looks. */
#ifndef ST_BILL_STYLE_H
#define ST_BILL_STYLE_H

extern const char st_export_style[];

#endif
