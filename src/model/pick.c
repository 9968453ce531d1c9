/* Which nodes will do (see the header). Texts are short, so they are walked and never parsed into anything. */
#include "model/pick.h"

#include <string.h>

#include "base/macros.h"
#include "base/quote.h"
#include "model/labels.h"
#include "model/tree.h"

typedef struct term {
    const char *text, *next; /* from its sign on; behind its line end */
    size_t len;
} term;

static bool read_term(const char *s, term *ret)
{
    const char *end = s && *s ? strchr(s, '\n') : NULL;
    if (!end)
        return false;
    *ret = (term){s, end + 1, (size_t)(end - s)};
    return true;
}

static int order(const char *a, size_t na, const char *b, size_t nb)
{
    int d = memcmp(a, b, ST_MIN(na, nb));
    return d ? d : (na > nb) - (na < nb);
}

/* name=value, without its sign. */
static bool is_pair(const char *s, size_t n)
{
    char word[2 * ST_LABEL_MAX + 2];
    if (n >= sizeof word)
        return false;
    memcpy(word, s, n);
    word[n] = '\0';
    char *eq = strchr(word, '=');
    if (!eq || strlen(word) != n)
        return false;
    *eq = '\0';
    return st_label_word(word) && st_label_word(eq + 1);
}

static bool is_name(const char *s, size_t n)
{
    char word[ST_NAME_MAX + 1];
    if (n > ST_NAME_MAX)
        return false;
    memcpy(word, s, n);
    word[n] = '\0';
    return strlen(word) == n && st_name_ok(word);
}

static bool is_term(const char *s, size_t n)
{
    if (n > 0 && s[0] == '-')
        return is_name(s + 1, n - 1);
    bool not = n > 0 && s[0] == '!';
    return is_pair(s + not, n - not );
}

bool st_pick_ok(const char *pick)
{
    term t, before = {0};
    int n = 0;
    const char *s = pick;
    for (; read_term(s, &t); s = t.next, before = t)
        if (++n > ST_PICK_TERMS || !is_term(t.text, t.len) ||
            (before.text && order(before.text, before.len, t.text, t.len) >= 0))
            return false;
    return *s == '\0';
}

static int insert(st_strbuf *pick, const char *text, size_t len, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf next = {0};
    bool put = false;
    int n = 1;
    term t;
    for (const char *s = st_strbuf_str(pick); read_term(s, &t); s = t.next, n++) {
        int d = order(t.text, t.len, text, len);
        if (d == 0)
            return 0;
        if (!put && d > 0) {
            st_strbuf_addf(&next, "%.*s\n", (int)len, text);
            put = true;
        }
        st_strbuf_addn(&next, t.text, t.len + 1);
    }
    if (n > ST_PICK_TERMS)
        return st_fail(err, ST_ELIMIT, "at most %d labels and nodes choose where a job may run",
                       ST_PICK_TERMS);
    if (!put)
        st_strbuf_addf(&next, "%.*s\n", (int)len, text);
    st_strbuf_clear(pick);
    st_strbuf_addn(pick, st_strbuf_str(&next), next.n);
    return 0;
}

int st_pick_add(st_strbuf *pick, const char *word, bool node, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf text = {0};
    const char *not = node ? NULL : strstr(word, "!=");
    char q[ST_QUOTE_MAX];
    if (node)
        st_strbuf_addf(&text, "-%s", word);
    else if (not &&not < strchr(word, '='))
        st_strbuf_addf(&text, "!%.*s=%s", (int)(not -word), word, not +2);
    else
        st_strbuf_add(&text, word);
    if (is_term(st_strbuf_str(&text), text.n) && (node || (word[0] != '-' && word[0] != '!')))
        return insert(pick, text.s, text.n, err);
    if (node)
        return st_fail(err, ST_EINVAL, "%s is no name of a node", st_quote(q, word));
    return st_fail(err, ST_EINVAL,
                   "%s is neither NAME=VALUE nor NAME!=VALUE, with 1 to %d letters, digits and "
                   ". _ - / + : each",
                   st_quote(q, word), ST_LABEL_MAX);
}

/* One label of a pick against a node's. */
static bool has(const char *labels, const char *pair, size_t len)
{
    char one[2 * ST_LABEL_MAX + 3];
    if (!labels || len + 2 > sizeof one)
        return false;
    memcpy(one, pair, len);
    memcpy(one + len, "\n", 2);
    return st_labels_meet(labels, one);
}

bool st_pick_meets(const char *pick, const char *name, const char *labels)
{
    term t;
    for (const char *s = pick; read_term(s, &t); s = t.next) {
        bool fine = t.text[0] == '-'
                        ? strlen(name) != t.len - 1 || memcmp(name, t.text + 1, t.len - 1) != 0
                    : t.text[0] == '!' ? !has(labels, t.text + 1, t.len - 1)
                                       : has(labels, t.text, t.len);
        if (!fine)
            return false;
    }
    return true;
}

void st_pick_say(const char *pick, st_strbuf *out)
{
    static const char signs[] = "+!-"; /* what it wants comes first */
    const char *comma = "";
    term t;
    for (int i = 0; i < 3; i++) {
        for (const char *s = pick; read_term(s, &t); s = t.next) {
            bool signed_ = t.text[0] == '!' || t.text[0] == '-';
            size_t eq = strcspn(t.text, "=");
            if (signed_ ? t.text[0] != signs[i] : i != 0)
                continue;
            st_strbuf_add(out, comma);
            comma = ", ";
            if (i == 0)
                st_strbuf_addn(out, t.text, t.len);
            else if (i == 1)
                st_strbuf_addf(out, "%.*s!=%.*s", (int)eq - 1, t.text + 1, (int)(t.len - eq - 1),
                               t.text + eq + 1);
            else
                st_strbuf_addf(out, "not %.*s", (int)t.len - 1, t.text + 1);
        }
    }
}
