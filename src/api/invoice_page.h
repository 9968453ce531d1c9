/*
 * An invoice as others want it. Private to src/api.
 */
#ifndef ST_API_INVOICE_PAGE_H
#define ST_API_INVOICE_PAGE_H

#include <jansson.h>

#include "base/strbuf.h"

/* A page without anything from outside, fit for A4: what is printed of it is the PDF. */
void st_invoice_html(const json_t *invoice, st_strbuf *out);
/* A row for each line, then rounding, net, taxes and total. */
void st_invoice_csv(const json_t *invoice, st_strbuf *out);

#endif
