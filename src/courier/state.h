/* The inside of a courier. Private to src/courier. */
#ifndef ST_COURIER_STATE_H
#define ST_COURIER_STATE_H

#include "base/vec.h"
#include "courier/courier.h"

typedef struct st_courier_host {
    char *host; /* "*.example.com" is everything below example.com */
    int port;
    bool plain; /* http */
} st_courier_host;

struct st_courier {
    ST_VEC(st_courier_host) hosts;
    ST_VEC(st_network) networks;
    ST_VEC(char *) domains;
    char *ca, *smtp, *login, *from;
    bool curl;
};

/* Fills u with the address if it may be used. */
int st_courier_parse(const st_courier *c, CURLU *u, const char *url, char host[ST_COURIER_HOST_MAX],
                     st_err *err);

#endif
