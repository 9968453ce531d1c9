/* What a fault asks for, and that the table of XIDs and the driver's own word agree. */
#include "health/health.h"

#include "base/macros.h"

static const struct {
    const char *name, *about;
} remedies[] = {
#define X(id, name, about) [id] = {name, about},
    ST_REMEDY_TABLE(X)
#undef X
};

const char *st_remedy_name(st_remedy remedy)
{
    ST_ASSERT(remedy < ST_REMEDY_COUNT);
    return remedies[remedy].name;
}

const char *st_remedy_about(st_remedy remedy)
{
    ST_ASSERT(remedy < ST_REMEDY_COUNT);
    return remedies[remedy].about;
}

/* What NVML calls a recovery action. */
static st_remedy of_driver(int64_t action)
{
    static const st_remedy rows[] = {ST_REMEDY_NONE, ST_REMEDY_RESET, ST_REMEDY_REBOOT,
                                     ST_REMEDY_INSPECT, ST_REMEDY_RESET};
    return action > 0 && action < (int64_t)ST_ARRAY_LEN(rows) ? rows[action] : ST_REMEDY_INSPECT;
}

static st_remedy of_xid(int64_t xid)
{
    st_xid_action action = st_xid_of(NULL, xid);
    return action == ST_XID_REBOOT    ? ST_REMEDY_REBOOT
           : action == ST_XID_INSPECT ? ST_REMEDY_INSPECT
                                      : ST_REMEDY_RESET; /* a site may have said so */
}

st_remedy st_remedy_of(const st_finding *finding)
{
    switch (finding->kind) {
    case ST_FAULT_XID:
        return of_xid(finding->code);
    case ST_FAULT_RECOVERY:
        return of_driver(finding->code);
    case ST_FAULT_SCRUB:
    case ST_FAULT_LINK:
    case ST_FAULT_WEAR:
        return ST_REMEDY_RESET;
    case ST_FAULT_GPU:
    case ST_FAULT_DRIVER:
    case ST_FAULT_LEFT:
        return ST_REMEDY_REBOOT;
    case ST_FAULT_TEST:
    case ST_FAULT_PCIE:
    case ST_FAULT_HEAT:
        return ST_REMEDY_INSPECT;
    default:
        return ST_REMEDY_NONE;
    }
}
