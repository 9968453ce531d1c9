/*
 * "Did you mean ...?": the candidate nearest to a mistyped word.
 */
#ifndef ST_BASE_SUGGEST_H
#define ST_BASE_SUGGEST_H

/* The nearest of a NULL-terminated list, or NULL when none is near enough to be worth naming.
 * Case does not count; of equally near ones the first wins. */
const char *st_suggest(const char *word, const char *const *candidates);

#endif
