/*
 * The agent that runs nothing (stintd/test/fake_agent.h).
 */
#include <inttypes.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/testing.h"
#include "stintd/test/fake_agent.h"

#define WAIT_MS 20000

/* ---- HTTP ------------------------------------------------------------------------------ */

static void dial(fake_line *line)
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)line->port)};
    int one = 1;

    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    line->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(line->fd >= 0);
    setsockopt(line->fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    assert_int_equal(connect(line->fd, (struct sockaddr *)&at, sizeof at), 0);
}

void fake_hang_up(fake_line *line)
{
    if (line->fd >= 0)
        close(line->fd);
    line->fd = -1;
}

static void say(fake_line *line, const char *method, const char *path, const char *token,
                const char *proof, const char *body)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf out = {0};

    if (line->fd < 0)
        dial(line);
    st_strbuf_addf(&out, "%s %s HTTP/1.1\r\nHost: stint\r\nAuthorization: Bearer %s\r\n", method,
                   path, token);
    if (proof)
        st_strbuf_addf(&out, "Stint-Proof: %s\r\n", proof);
    if (body)
        st_strbuf_addf(&out, "Content-Type: application/json\r\nContent-Length: %zu\r\n",
                       strlen(body));
    st_strbuf_add(&out, "\r\n");
    st_strbuf_add(&out, body ? body : "");
    for (size_t at = 0; at < out.n;) {
        ssize_t n = send(line->fd, out.s + at, out.n - at, MSG_NOSIGNAL);

        if (n <= 0)
            return; /* hearing nothing will say so */
        at += (size_t)n;
    }
}

void fake_say(fake_line *line, const char *method, const char *path, const char *token,
              const char *body)
{
    say(line, method, path, token, NULL, body);
}

bool fake_heard(const fake_line *line, int wait_ms)
{
    struct pollfd p = {.fd = line->fd, .events = POLLIN};

    return poll(&p, 1, wait_ms) > 0;
}

static bool more(fake_line *line, st_strbuf *got, int wait_ms)
{
    char bytes[16384];
    ssize_t n;

    if (!fake_heard(line, wait_ms))
        return false;
    n = recv(line->fd, bytes, sizeof bytes, 0);
    if (n <= 0)
        return false;
    st_strbuf_addn(got, bytes, (size_t)n);
    return true;
}

int fake_hear(fake_line *line, int wait_ms, json_t **ret_json, st_strbuf *ret_text)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf got = {0};
    const char *end, *length;
    size_t head, n;

    if (ret_json)
        *ret_json = NULL;
    while (!(end = strstr(st_strbuf_str(&got), "\r\n\r\n")))
        if (!more(line, &got, wait_ms)) {
            fake_hang_up(line);
            return 0;
        }
    head = (size_t)(end + 4 - got.s);
    length = strcasestr(got.s, "\r\nContent-Length:");
    n = length && length < end ? strtoul(length + 17, NULL, 10) : 0;
    while (got.n < head + n)
        if (!more(line, &got, wait_ms)) {
            fake_hang_up(line);
            return 0;
        }
    if (ret_json)
        *ret_json = json_loadb(got.s + head, n, 0, NULL);
    if (ret_text)
        st_strbuf_addn(ret_text, got.s + head, n);
    if (strtol(got.s + 9, NULL, 10) >= 400)
        fake_hang_up(line); /* who is refused early is not read on */
    return (int)strtol(got.s + 9, NULL, 10);
}

int fake_ask(int port, const char *method, const char *path, const char *token, const char *body,
             json_t **ret_json)
{
    fake_line line = {port, -1};
    int status;

    fake_say(&line, method, path, token, body);
    status = fake_hear(&line, WAIT_MS, ret_json, NULL);
    fake_hang_up(&line);
    return status;
}

/* ---- the agent ---------------------------------------------------------------------------- */

static int64_t wall_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void fake_new_key(fake_agent *a)
{
    unsigned char key[ST_KEY_BYTES];

    crypto_sign_keypair(key, a->secret);
    sodium_bin2hex(a->key, sizeof a->key, key, sizeof key);
}

void fake_new_boot(fake_agent *a)
{
    unsigned char boot[ST_BOOT_BYTES];

    randombytes_buf(boot, sizeof boot);
    sodium_bin2hex(a->boot, sizeof a->boot, boot, sizeof boot);
}

static void sign(const fake_agent *a, const char *session, uint64_t n, const char *method,
                 const char *path, const char *body, st_strbuf *out)
{
    st_proof p = {.n = n};

    snprintf(p.node, sizeof p.node, "%s", a->name);
    snprintf(p.boot, sizeof p.boot, "%s", a->boot);
    snprintf(p.session, sizeof p.session, "%s", session);
    st_proof_digest(method, path, body, body ? strlen(body) : 0, p.digest);
    st_proof_sign(&p, a->secret, out);
}

const char *fake_proof(fake_agent *a, const char *method, const char *path, const char *body)
{
    if (a->moved)
        fake_register(a, NULL, a->gpu, a->gpus);
    st_strbuf_clear(&a->proof);
    sign(a, a->session[0] ? a->session : "0000000000000000", ++a->n, method, path, body, &a->proof);
    return st_strbuf_str(&a->proof);
}

int fake_ask_as(fake_agent *a, const char *method, const char *path, const char *body,
                json_t **ret_json)
{
    return fake_ask(a->status.port, method, path, fake_proof(a, method, path, body), body,
                    ret_json);
}

fake_agent *fake_new(int port, const char *name, const char *machine)
{
    fake_agent *a = st_xcalloc(1, sizeof *a);

    snprintf(a->name, sizeof a->name, "%s", name);
    snprintf(a->machine, sizeof a->machine, "%s", machine);
    a->status = a->poll = (fake_line){port, -1};
    a->health = "ok";
    fake_new_key(a);
    fake_new_boot(a);
    return a;
}

void fake_free(fake_agent *a)
{
    fake_hang_up(&a->status);
    fake_hang_up(&a->poll);
    json_decref(a->desired);
    st_vec_free(&a->tasks);
    st_strbuf_done(&a->proof);
    free(a);
}

void fake_move(fake_agent *a, int port)
{
    fake_hang_up(&a->status);
    fake_hang_up(&a->poll);
    a->status.port = a->poll.port = port;
    a->moved = true;
}

int fake_register(fake_agent *a, const char *token, const char *gpu, int gpus)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    ST_CLEANUP(st_strbuf_done) st_strbuf proof = {0};
    static const char path[] = "/v1/agent/register";
    char challenge[ST_SESSION_TEXT];
    json_t *answer;
    const char *session;
    int status = fake_ask(a->status.port, "GET", "/v1/agent/challenge", "", NULL, &answer);

    if (status != 200)
        return status;
    a->moved = false;
    snprintf(challenge, sizeof challenge, "%s",
             json_string_value(json_object_get(answer, "challenge")));
    json_decref(answer);
    if (gpu != a->gpu)
        snprintf(a->gpu, sizeof a->gpu, "%s", gpu);
    a->gpus = gpus;
    st_strbuf_addf(&body,
                   "{\"name\":\"%s\",\"machine_id\":\"%s\",\"key\":\"%s\",\"cpu\":64,"
                   "\"ram\":\"512Gi\","
                   "\"address\":\"192.0.2.7\",\"version\":\"test\",\"driver\":\"570.1\","
                   "\"gpu\":{\"type\":\"%s\",\"count\":%d,\"vram\":\"80Gi\",\"uuids\":[",
                   a->name, a->machine, a->key, gpu, gpus);
    for (int d = 0; d < gpus; d++)
        st_strbuf_addf(&body, "%s\"GPU-%s-%d\"", d ? "," : "", a->machine, d);
    st_strbuf_add(&body, "]},\"topology\":{\"rack\":\"r1\"},\"labels\":{\"site\":\"lab\"}}");
    sign(a, challenge, 0, "POST", path, st_strbuf_str(&body), &proof);
    say(&a->status, "POST", path, token ? token : st_strbuf_str(&proof),
        token ? st_strbuf_str(&proof) : NULL, st_strbuf_str(&body));
    status = fake_hear(&a->status, WAIT_MS, &answer, NULL);
    session = json_string_value(json_object_get(answer, "session"));
    if (session) {
        snprintf(a->session, sizeof a->session, "%s", session);
        a->n = 0;
    }
    json_decref(answer);
    return status;
}

fake_task *fake_task_of(fake_agent *a, const char *job, int task)
{
    for (size_t i = 0; i < a->tasks.n; i++)
        if (strcmp(a->tasks.v[i].job, job) == 0 && a->tasks.v[i].task == task)
            return &a->tasks.v[i];
    return NULL;
}

static bool is(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void end_task(fake_task *t, int code, int signal)
{
    t->state = "exited";
    t->exit_code = code;
    t->signal = signal;
    t->ended_ms = wall_ms();
}

static void obey_task(fake_agent *a, const json_t *job, const json_t *task)
{
    const char *id = json_string_value(json_object_get(job, "job"));
    const char *want = json_string_value(json_object_get(job, "want"));
    int stay = (int)json_integer_value(json_object_get(job, "stay"));
    int n = (int)json_integer_value(json_object_get(task, "task"));
    fake_task *t = fake_task_of(a, id, n);

    if (t && t->stay != stay) { /* of an earlier stay: away with it */
        st_vec_remove(&a->tasks, (size_t)(t - a->tasks.v));
        t = NULL;
    }
    if (!t) {
        fake_task fresh = {.stay = stay, .task = n, .state = "running"};

        if (json_is_true(json_object_get(task, "over")) || is(want, "stop"))
            return;
        snprintf(fresh.job, sizeof fresh.job, "%s", id);
        st_vec_push(&a->tasks, fresh);
        t = &a->tasks.v[a->tasks.n - 1];
    }
    t->listed = true;
    if (is(t->state, "exited"))
        return;
    if (is(want, "stop"))
        end_task(t, 0, 15);
    else if (is(want, "checkpoint"))
        t->state = "checkpointed";
    else if (is(want, "pause"))
        t->state = "paused";
    else
        t->state = "running";
}

/* What is on the list runs, what is not on it does not. */
static void obey(fake_agent *a)
{
    size_t i, j, n = 0;
    json_t *job, *task;

    for (i = 0; i < a->tasks.n; i++)
        a->tasks.v[i].listed = false;
    json_array_foreach(json_object_get(a->desired, "jobs"), i, job)
        json_array_foreach(json_object_get(job, "tasks"), j, task) obey_task(a, job, task);
    for (i = 0; i < a->tasks.n; i++)
        if (a->tasks.v[i].listed)
            a->tasks.v[n++] = a->tasks.v[i];
    a->tasks.n = n;
}

void fake_poll_say(fake_agent *a, int wait_s)
{
    char path[128];

    snprintf(path, sizeof path, "/v1/agent/desired?revision=%" PRId64 "&wait=%d", a->revision,
             wait_s);
    fake_say(&a->poll, "GET", path, fake_proof(a, "GET", path, NULL), NULL);
}

bool fake_poll_hear(fake_agent *a)
{
    json_t *answer;
    int status = fake_hear(&a->poll, WAIT_MS, &answer, NULL);
    int64_t epoch = json_integer_value(json_object_get(answer, "epoch"));

    if (status != 200 || epoch < a->epoch) { /* of one who decides no more */
        json_decref(answer);
        return false;
    }
    json_decref(a->desired);
    a->desired = answer;
    a->epoch = epoch;
    a->revision = json_integer_value(json_object_get(answer, "revision"));
    obey(a);
    return true;
}

bool fake_poll(fake_agent *a, int wait_s)
{
    fake_poll_say(a, wait_s);
    return fake_poll_hear(a);
}

int fake_status(fake_agent *a)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf body = {0};
    const char *state;
    json_t *answer;
    int status;

    st_strbuf_addf(&body,
                   "{\"epoch\":%" PRId64 ",\"revision\":%" PRId64 ",\"now_ms\":%" PRId64
                   ",\"node\":{\"health\":\"%s\"},\"tasks\":[",
                   a->epoch, a->revision, wall_ms(), a->health);
    for (size_t i = 0; i < a->tasks.n; i++) {
        const fake_task *t = &a->tasks.v[i];

        st_strbuf_addf(&body, "%s{\"job\":\"%s\",\"stay\":%d,\"task\":%d,\"state\":\"%s\"",
                       i ? "," : "", t->job, t->stay, t->task, t->state);
        if (is(t->state, "exited"))
            st_strbuf_addf(&body, ",\"exit_code\":%d,\"signal\":%d,\"ended_ms\":%" PRId64,
                           t->exit_code, t->signal, t->ended_ms);
        st_strbuf_addc(&body, '}');
    }
    st_strbuf_add(&body, "]}");
    fake_say(&a->status, "POST", "/v1/agent/status",
             fake_proof(a, "POST", "/v1/agent/status", st_strbuf_str(&body)), st_strbuf_str(&body));
    status = fake_hear(&a->status, WAIT_MS, &answer, NULL);
    state = json_string_value(json_object_get(answer, "state"));
    if (state)
        snprintf(a->state, sizeof a->state, "%s", state);
    json_decref(answer);
    return status;
}

void fake_turn(fake_agent *a)
{
    fake_status(a);
    fake_poll(a, 0);
    fake_status(a);
}

void fake_exit(fake_agent *a, const char *job, int task, int code)
{
    fake_task *t = fake_task_of(a, job, task);

    if (!t)
        fail_msg("%s has no task %d of %s", a->name, task, job);
    end_task(t, code, 0);
}

const char *fake_want(const fake_agent *a, const char *job)
{
    json_t *row;
    size_t i;

    json_array_foreach(json_object_get(a->desired, "jobs"), i,
                       row) if (is(json_string_value(json_object_get(row, "job")),
                                   job)) return json_string_value(json_object_get(row, "want"));
    return "";
}

/* ---- stintd --------------------------------------------------------------------------------- */

void fake_world_init(fake_world *w)
{
    *w = (fake_world){.dir = "/tmp/stint-agents-XXXXXX"};
    assert_true(sodium_init() >= 0);
    assert_non_null(mkdtemp(w->dir));
    st_config_init(&w->config);
    w->config.store = NULL;
    w->config.listen = "127.0.0.1:0";
    w->config.engine = "native";
    w->config.rate = 100000;
    w->config.connections = 20000;
    w->config.policy.notice_ms = 0;
    w->config.policy.min_run_ms = 0;
    w->config.policy.cooldown_ms = 0;
}

static void make_owner(fake_world *w)
{
    st_cmd_token cmd = {.who = {.role = ST_ROLE_OWNER, .user = "test", .source = "test"},
                        .account = "",
                        .user = "root",
                        .role = ST_ROLE_OWNER,
                        .label = "",
                        .expires_ms = ST_STORE_NEVER};
    st_err err = {0};

    st_cmd_token_make(&cmd);
    assert_ok(st_serve_do(w->serve, &cmd.cmd, &err));
    snprintf(w->owner, sizeof w->owner, "%s", cmd.text);
}

void fake_world_start(fake_world *w)
{
    char path[128];
    st_err err = {0};

    snprintf(path, sizeof path, "%s/stint.db", w->dir);
    w->config.store = st_arena_strdup(w->config.arena, path);
    assert_ok(st_serve_new(&w->config, &w->serve, &err));
    assert_ok(st_serve_start(w->serve, &w->port, &err));
    if (!w->owner[0])
        make_owner(w);
}

void fake_world_stop(fake_world *w)
{
    st_serve_free(ST_TAKE(w->serve));
}

void fake_world_done(fake_world *w)
{
    char command[128];

    fake_world_stop(w);
    st_config_done(&w->config);
    snprintf(command, sizeof command, "rm -rf %s", w->dir);
    assert_int_equal(system(command), 0);
}

json_t *fake_owner(fake_world *w, const char *method, const char *path, const char *body, int want)
{
    json_t *answer;
    int status = fake_ask(w->port, method, path, w->owner, body, &answer);

    if (status != want) {
        ST_CLEANUP(st_freep) char *text = json_dumps(answer, 0);

        fail_msg("%s %s: %d, not %d: %s", method, path, status, want, text ? text : "");
    }
    return answer;
}

void fake_join_token(fake_world *w, int uses, char ret[ST_TOKEN_TEXT])
{
    char body[80];
    json_t *answer;

    snprintf(body, sizeof body, "{\"pool\":\"main\",\"uses\":%d,\"new_types\":true}", uses);
    answer = fake_owner(w, "POST", "/v1/admin/join-tokens", body, 201);
    snprintf(ret, ST_TOKEN_TEXT, "%s", json_string_value(json_object_get(answer, "token")));
    json_decref(answer);
}

void fake_submit(fake_world *w, const char *doc, char ret[32])
{
    json_t *answer = fake_owner(w, "POST", "/v1/jobs", doc, 201);

    snprintf(ret, 32, "%s", json_string_value(json_object_get(answer, "id")));
    json_decref(answer);
}

static void wait_for(fake_world *w, const char *path, const char *state)
{
    char last[32] = "";

    for (int left = WAIT_MS / 5; left > 0; left--) {
        json_t *row = fake_owner(w, "GET", path, NULL, 200);

        snprintf(last, sizeof last, "%s", json_string_value(json_object_get(row, "state")));
        json_decref(row);
        if (is(last, state))
            return;
        nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
    }
    fail_msg("%s is %s, not %s", path, last, state);
}

void fake_job_is(fake_world *w, const char *job, const char *state)
{
    char path[64];

    snprintf(path, sizeof path, "/v1/jobs/%s", job);
    wait_for(w, path, state);
}

void fake_node_is(fake_world *w, const char *node, const char *state)
{
    char path[96];

    snprintf(path, sizeof path, "/v1/nodes/%s", node);
    wait_for(w, path, state);
}
