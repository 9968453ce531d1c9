/* Labels (see the header). Texts are short, so they are walked and never parsed into anything. */
#include "model/labels.h"

#include <string.h>

#include "base/quote.h"

bool st_label_word(const char *word)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "._-/+:";
    size_t n = strspn(word, plain);
    return n > 0 && n <= ST_LABEL_MAX && word[n] == '\0';
}

/* One line: its name, its value, and where the next one begins. */
typedef struct line {
    const char *name, *value, *next;
    size_t name_len, value_len;
} line;

static bool read_line(const char *s, line *ret)
{
    const char *end, *eq;
    if (!s || !*s)
        return false;
    end = strchr(s, '\n');
    if (!end)
        end = s + strlen(s);
    eq = memchr(s, '=', (size_t)(end - s));
    if (!eq)
        return false;
    *ret = (line){s, eq + 1, *end ? end + 1 : end, (size_t)(eq - s), (size_t)(end - eq - 1)};
    return true;
}

static int order(const char *a, size_t na, const char *b, size_t nb)
{
    int d = memcmp(a, b, na < nb ? na : nb);
    return d ? d : (na > nb) - (na < nb);
}

static bool is_word(const char *s, size_t n)
{
    char word[ST_LABEL_MAX + 1];
    if (n > ST_LABEL_MAX)
        return false;
    memcpy(word, s, n);
    word[n] = '\0';
    return strlen(word) == n && st_label_word(word);
}

bool st_labels_ok(const char *labels)
{
    line l, before = {0};
    int n = 0;
    for (const char *s = labels; *s; s = l.next, before = l) {
        if (!read_line(s, &l) || ++n > ST_LABELS_MAX || l.next[-1] != '\n' ||
            !is_word(l.name, l.name_len) || !is_word(l.value, l.value_len))
            return false;
        if (before.name && order(before.name, before.name_len, l.name, l.name_len) >= 0)
            return false;
    }
    return true;
}

int st_labels_set(st_strbuf *labels, const char *name, const char *value, st_err *err)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf next = {0};
    char q[ST_QUOTE_MAX];
    size_t len = strlen(name);
    int n = 0;
    bool put = value == NULL;
    line l;
    if (!st_label_word(name) || (value && !st_label_word(value)))
        return st_fail(err, ST_EINVAL,
                       "%s cannot be the %s of a label: 1 to %d letters, digits and . _ - / + :",
                       st_quote(q, st_label_word(name) ? value : name),
                       st_label_word(name) ? "value" : "name", ST_LABEL_MAX);
    for (const char *s = st_strbuf_str(labels); read_line(s, &l); s = l.next) {
        int d = order(l.name, l.name_len, name, len);
        if (!put && d >= 0) {
            st_strbuf_addf(&next, "%s=%s\n", name, value);
            put = true;
            n++;
        }
        if (d == 0)
            continue;
        st_strbuf_addn(&next, l.name, (size_t)(l.next - l.name));
        n++;
    }
    if (!put) {
        st_strbuf_addf(&next, "%s=%s\n", name, value);
        n++;
    }
    if (n > ST_LABELS_MAX)
        return st_fail(err, ST_ELIMIT, "there are at most %d labels", ST_LABELS_MAX);
    st_strbuf_clear(labels);
    st_strbuf_addn(labels, st_strbuf_str(&next), next.n);
    return 0;
}

bool st_labels_next(const char *labels, size_t *at, char name[ST_LABEL_MAX + 1],
                    char value[ST_LABEL_MAX + 1])
{
    line l;
    if (!labels || !read_line(labels + *at, &l) || l.name_len > ST_LABEL_MAX ||
        l.value_len > ST_LABEL_MAX)
        return false;
    memcpy(name, l.name, l.name_len);
    name[l.name_len] = '\0';
    memcpy(value, l.value, l.value_len);
    value[l.value_len] = '\0';
    *at = (size_t)(l.next - labels);
    return true;
}

static bool meets(const line *have, const line *want)
{
    return have->value_len >= want->value_len &&
           memcmp(have->value, want->value, want->value_len) == 0 &&
           (have->value_len == want->value_len || have->value[want->value_len] == '.');
}

bool st_labels_meet(const char *labels, const char *required)
{
    line want, have;
    const char *s = labels;
    for (const char *r = required; read_line(r, &want); r = want.next) {
        int d = -1;
        while (d < 0 && read_line(s, &have)) {
            d = order(have.name, have.name_len, want.name, want.name_len);
            s = d <= 0 ? have.next : s;
        }
        if (d != 0 || !meets(&have, &want))
            return false;
    }
    return true;
}

void st_labels_say(const char *labels, st_strbuf *out)
{
    const char *comma = "";
    line l;
    for (const char *s = labels; read_line(s, &l); s = l.next, comma = ", ") {
        st_strbuf_add(out, comma);
        st_strbuf_addn(out, l.name, l.name_len + 1 + l.value_len);
    }
}
