/*
 * A stintd of its own for a benchmark (bench/service.h).
 */
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "load.h"
#include "service.h"

extern char **environ;

void service_die(const service *b, const char *what)
{
    fprintf(stderr, "bench: %s; see %s\n", what, b->data);
    if (b->pid > 0)
        kill(b->pid, SIGKILL);
    exit(1);
}

/* ---- the process ---------------------------------------------------------------------------- */

static int port_of(const char *log)
{
    FILE *f = fopen(log, "r");
    char line[1024];
    int port = 0;

    while (f && fgets(line, sizeof line, f))
        if (strstr(line, "event=listening") && strstr(line, "port="))
            port = atoi(strstr(line, "port=") + 5);
    if (f)
        fclose(f);
    return port;
}

/* Returns how long it took until it was ready. */
double service_start(service *b)
{
    char *args[] = {st_xstrdup(b->program),
                    st_xstrdup("--config"),
                    b->config,
                    st_xstrdup("--data"),
                    b->data,
                    NULL};
    posix_spawn_file_actions_t files;
    int64_t began = load_now_us();

    unlink(b->log);
    posix_spawn_file_actions_init(&files);
    posix_spawn_file_actions_addopen(&files, 2, b->log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (posix_spawn(&b->pid, b->program, &files, NULL, args, environ) != 0)
        service_die(b, "stintd cannot be started");
    posix_spawn_file_actions_destroy(&files);
    b->port = 0;
    while (b->port == 0 || load_once(b->port, "", "GET", "/readyz", "", NULL) != 200) {
        if (load_now_us() - began > 60000000 || waitpid(b->pid, NULL, WNOHANG) > 0)
            service_die(b, "stintd does not get ready");
        usleep(1000);
        b->port = port_of(b->log);
    }
    free(args[0]);
    free(args[1]);
    free(args[3]);
    return (double)(load_now_us() - began) / 1e6;
}

void service_stop(service *b, int sig)
{
    kill(b->pid, sig);
    waitpid(b->pid, NULL, 0);
    b->pid = 0;
}

void service_prepare(service *b, const char *folder)
{
    char path[300];
    FILE *f;

    snprintf(b->data, sizeof b->data, "%s/stintd-bench-XXXXXX", folder);
    if (!mkdtemp(b->data))
        service_die(b, "the folder cannot be made");
    snprintf(b->config, sizeof b->config, "%s/config", b->data);
    snprintf(b->log, sizeof b->log, "%s/log", b->data);
    snprintf(b->store, sizeof b->store, "%s/stint.db", b->data);
    f = fopen(b->config, "w");
    if (!f)
        service_die(b, "the configuration cannot be written");
    fputs("listen: 127.0.0.1:0\nrate: 1000000\n", f);
    fclose(f);
    service_start(b);
    snprintf(path, sizeof path, "%s/owner.token", b->data);
    f = fopen(path, "r");
    if (!f || fscanf(f, "%127s", b->token) != 1)
        service_die(b, "there is no token");
    fclose(f);
}

void service_post(const service *b, const char *path, const char *body)
{
    ST_CLEANUP(st_strbuf_done) st_strbuf answer = {0};

    if (load_once(b->port, b->token, "POST", path, body, &answer) != 201)
        service_die(b, st_strbuf_str(&answer));
}
