/*
 * The binary heap of trace/queue.h.
 */
#include "trace/queue.h"

#include <stdbool.h>

static bool before(const st_due *a, const st_due *b)
{
    if (a->at_ms != b->at_ms)
        return a->at_ms < b->at_ms;
    if (a->kind != b->kind)
        return a->kind < b->kind;
    return a->seq < b->seq;
}

void st_due_push(st_due_queue *q, st_due due)
{
    size_t i = q->heap.n;

    due.seq = q->pushed++;
    st_vec_push(&q->heap, due);
    for (; i > 0 && before(&due, &q->heap.v[(i - 1) / 2]); i = (i - 1) / 2)
        q->heap.v[i] = q->heap.v[(i - 1) / 2];
    q->heap.v[i] = due;
}

const st_due *st_due_first(const st_due_queue *q)
{
    return q->heap.n > 0 ? &q->heap.v[0] : NULL;
}

st_due st_due_pop(st_due_queue *q)
{
    st_due first, last;
    size_t i = 0, child;

    ST_ASSERT(q->heap.n > 0);
    first = q->heap.v[0];
    last = st_vec_pop(&q->heap);
    while ((child = 2 * i + 1) < q->heap.n) {
        if (child + 1 < q->heap.n && before(&q->heap.v[child + 1], &q->heap.v[child]))
            child++;
        if (!before(&q->heap.v[child], &last))
            break;
        q->heap.v[i] = q->heap.v[child];
        i = child;
    }
    if (q->heap.n > 0)
        q->heap.v[i] = last;
    return first;
}

void st_due_done(st_due_queue *q)
{
    st_vec_free(&q->heap);
}
