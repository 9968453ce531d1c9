/*
 * Text from outside, made fit for a one-line message: bounded in length and
 * without control characters.
 */
#ifndef ST_BASE_QUOTE_H
#define ST_BASE_QUOTE_H

#include <stddef.h>

#include "base/strbuf.h"

#define ST_QUOTE_MAX 80

/* Fills buf with s in double quotes and returns buf. Control characters become \n, \t or \xNN, those that
 * deceive (base/utf8.h) \u{NNNN};
 * what does not fit is cut at a character boundary and marked with "...". */
const char *st_quote(char buf[ST_QUOTE_MAX], const char *s);

/* Appends s as a JSON string, quotes included. Bytes that are not UTF-8 become U+FFFD. */
void st_quote_json(st_strbuf *out, const char *s);

/* Text in an element or a "quoted" attribute of a page that is HTML and XML. Control characters, which XML
 * forbids, characters that deceive, and bytes that are not UTF-8 become U+FFFD. */
void st_quote_html(st_strbuf *out, const char *s);

/* A field of CSV (RFC 4180), in quotes where it needs them; also when it is empty. What a spreadsheet would run as a formula
 * (a first =, +, -, @, tab or CR) gets an apostrophe in front, unless it is a number. */
void st_quote_csv(st_strbuf *out, const char *s);

#endif
