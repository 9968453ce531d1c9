#!/usr/bin/env python3
"""Who may do what to whom: every route, every role, every place, each cell by hand.

The tables below are written from doc/dev/stintd.md ("Identity"), not from the program's own table of
routes. The two are compared by name only: a route without a row here fails, and so does a row
without a route.

The accounts:

    north            the parent
      own            where the callers stand
        sub          below them
      sibling        beside them
    (nothing)        "unknown": a name that was never used

What is outside a caller's subtree must answer as what never was: same status, same code, same
sentence but for the name that was asked for.
"""

import hashlib
import os
import re
import sys

sys.path.insert(0, os.path.dirname(__file__))
from harness import Failure, Stintd, Stream, check, fleet, main, token  # noqa: E402

# Public keys of Ed25519, each for one witness.
WITNESS_KEYS = """
420cd9ca4a6179c05c0b0c0ce434d8dc2231b83a09542d0e51af65215ab82b12
cad514c47af0e15e63054131d2ee185af2f79adef3995062d6b59deb31ca26c9
6f45bd16cf87e6d3ceadde582acb82fbf8ffefa8ca6f827f19c5e5c616999d2f
dac133c307235ad80bdc51b9148a3c2b2c6492180e8974243bf8f59b287f030d
ee48e24d79f607846d22afd5dfe5c3f91881b778bc2072a4596ed01509747f8b
e21be41aaadb303e5eabe48f246c5260c426462225a0b3b7889fa0f38f15d81f
7760defd154f936756009a0a9ef2c5963b9e5da89adc9b7670096c713a1feb2f
777234ef8ed0d4dfd1a5aa196221e4bd52fbc6500e247d37789e5ae574f6e714
a6dac8e9cb99f4f6785e3182e51d9c3fdb5ca12ce6694e74b08635df0c9a6150
d304e1b343710a6e527b4fc93936f840786e89a2730ed879f6018d09f4c4090c
77e00b28f6bc9997dbd3e067e409ff98182f9f5276ce447f61198404fcd3d691
e4f7cb798f13bb41bcf6b932579522a0717c1a8565e44d5f39bbece321143fc3
""".split()
COSIGNED = ('{"cosigned":1,"log":"%s","cluster":"stint","at":1,"size":1,"root":"%s","key":"%s","signature":"%s"}'
            % ("00" * 32, "00" * 32, "00" * 32, "00" * 64))
ROLES = "owner admin member viewer auditor node none bad revoked expired".split()
PLACES = "own sub sibling parent unknown".split()


def table(places, text):
    """{(role, place): status}"""
    cells = {}
    rows = [line.split() for line in text.strip().splitlines()]
    check([row[0] for row in rows] == ROLES, "a table has other roles: %s", rows)
    for row in rows:
        check(len(row) == len(places.split()) + 1, "a row has too few cells: %s", row)
        for place, status in zip(places.split(), row[1:]):
            cells[row[0], place] = int(status)
    return cells


# Anybody, with or without a token.
OPEN = table("-", """
    owner   200
    admin   200
    member  200
    viewer  200
    auditor 200
    node    200
    none    200
    bad     200
    revoked 200
    expired 200
""")
WHOAMI = table("-", """
    owner   200
    admin   200
    member  200
    viewer  200
    auditor 200
    node    200
    none    401
    bad     401
    revoked 401
    expired 401
""")
# A login brings what it logs in with in its body, whoever sends it; here it is empty.
LOGIN = table("-", """
    owner   400
    admin   400
    member  400
    viewer  400
    auditor 400
    node    400
    none    400
    bad     400
    revoked 400
    expired 400
""")
# A browser's session; with a token there is none to end.
LOGOUT = table("-", """
    owner   204
    admin   204
    member  204
    viewer  204
    auditor 204
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
# For oneself.
LOGIN_CODE = table("-", """
    owner   201
    admin   201
    member  201
    viewer  201
    auditor 201
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
# Whatever a person may read and that has no place: lists show what is the caller's.
READ = table("-", """
    owner   200
    admin   200
    member  200
    viewer  200
    auditor 200
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
# A witness's signature proves itself, so who may see may bring one; here of a witness that there is not.
COSIGN = {cell: 404 if status == 200 else status for cell, status in READ.items()}
AUDIT = table("-", """
    owner   200
    admin   200
    member  403
    viewer  403
    auditor 200
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
VERIFY = table("-", """
    owner   200
    admin   403
    member  403
    viewer  403
    auditor 200
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
# One account, or what stands in it.
SEE = table("own sub sibling parent unknown", """
    owner   200 200 200 200 404
    admin   200 200 404 404 404
    member  200 200 404 404 404
    viewer  200 200 404 404 404
    auditor 200 200 404 404 404
    node    403 403 403 403 403
    none    401 401 401 401 401
    bad     401 401 401 401 401
    revoked 401 401 401 401 401
    expired 401 401 401 401 401
""")
# An account's own quota comes from above it.
CHANGE_ACCOUNT = table("own sub sibling parent unknown", """
    owner   200 200 200 200 404
    admin   403 200 404 404 404
    member  403 403 403 403 403
    viewer  403 403 403 403 403
    auditor 403 403 403 403 403
    node    403 403 403 403 403
    none    401 401 401 401 401
    bad     401 401 401 401 401
    revoked 401 401 401 401 401
    expired 401 401 401 401 401
""")
# One that was made in the account.
REMOVE_IN = table("own sub sibling parent unknown", """
    owner   204 204 204 204 404
    admin   204 204 404 404 404
    member  403 403 403 403 403
    viewer  403 403 403 403 403
    auditor 403 403 403 403 403
    node    403 403 403 403 403
    none    401 401 401 401 401
    bad     401 401 401 401 401
    revoked 401 401 401 401 401
    expired 401 401 401 401 401
""")
# Accounts and tokens are made in one's account and below.
MAKE_IN = table("own sub sibling parent unknown", """
    owner   201 201 201 201 404
    admin   201 201 404 404 404
    member  403 403 403 403 403
    viewer  403 403 403 403 403
    auditor 403 403 403 403 403
    node    403 403 403 403 403
    none    401 401 401 401 401
    bad     401 401 401 401 401
    revoked 401 401 401 401 401
    expired 401 401 401 401 401
""")
# A member submits to its account alone, and sees those below.
SUBMIT = table("own sub sibling parent unknown", """
    owner   201 201 201 201 404
    admin   201 201 404 404 404
    member  201 403 404 404 404
    viewer  403 403 403 403 403
    auditor 403 403 403 403 403
    node    403 403 403 403 403
    none    401 401 401 401 401
    bad     401 401 401 401 401
    revoked 401 401 401 401 401
    expired 401 401 401 401 401
""")
# A batch is answered as a whole; the cells are those of its one job, 201 where the whole passed.
BATCH = table("own sub sibling parent unknown", """
    owner   201 201 201 201 404
    admin   201 201 404 404 404
    member  201 403 404 404 404
    viewer  403 403 403 403 403
    auditor 403 403 403 403 403
    node    403 403 403 403 403
    none    401 401 401 401 401
    bad     401 401 401 401 401
    revoked 401 401 401 401 401
    expired 401 401 401 401 401
""")
# Jobs: "mine" is the caller's own, "own" another user's in the same account.
CHANGE_JOB = table("mine own sub sibling parent unknown", """
    owner   200 200 200 200 200 404
    admin   200 200 200 404 404 404
    member  200 403 403 404 404 404
    viewer  403 403 403 403 403 403
    auditor 403 403 403 403 403 403
    node    403 403 403 403 403 403
    none    401 401 401 401 401 401
    bad     401 401 401 401 401 401
    revoked 401 401 401 401 401 401
    expired 401 401 401 401 401 401
""")
# Tokens: one's own, and for admins and auditors those of the subtree.
SEE_TOKEN = table("mine own sub sibling parent unknown", """
    owner   200 200 200 200 200 404
    admin   200 200 200 404 404 404
    member  200 404 404 404 404 404
    viewer  200 404 404 404 404 404
    auditor 200 200 200 404 404 404
    node    403 403 403 403 403 403
    none    401 401 401 401 401 401
    bad     401 401 401 401 401 401
    revoked 401 401 401 401 401 401
    expired 401 401 401 401 401 401
""")
REVOKE_TOKEN = table("mine own sub sibling parent unknown", """
    owner   204 204 204 204 204 404
    admin   204 204 204 404 404 404
    member  204 404 404 404 404 404
    viewer  204 404 404 404 404 404
    auditor 204 403 403 404 404 404
    node    403 403 403 403 403 403
    none    401 401 401 401 401 401
    bad     401 401 401 401 401 401
    revoked 401 401 401 401 401 401
    expired 401 401 401 401 401 401
""")
# The fleet is everybody's to see and the owner's to change.
FLEET_ONE = table("there unknown", """
    owner   200 404
    admin   200 404
    member  200 404
    viewer  200 404
    auditor 200 404
    node    403 403
    none    401 401
    bad     401 401
    revoked 401 401
    expired 401 401
""")
FLEET_MAKE = table("new", """
    owner   201
    admin   403
    member  403
    viewer  403
    auditor 403
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
FLEET_CHANGE = table("there unknown", """
    owner   200 404
    admin   403 403
    member  403 403
    viewer  403 403
    auditor 403 403
    node    403 403
    none    401 401
    bad     401 401
    revoked 401 401
    expired 401 401
""")

# Sizes are made in one's own account; rules are the owner's.
OWN_PUT = table("new", """
    owner   200
    admin   200
    member  403
    viewer  403
    auditor 403
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
OWN_REMOVE = table("there unknown", """
    owner   204 404
    admin   204 404
    member  403 403
    viewer  403 403
    auditor 403 403
    node    403 403
    none    401 401
    bad     401 401
    revoked 401 401
    expired 401 401
""")
OWNER_ONLY = table("-", """
    owner   200
    admin   403
    member  403
    viewer  403
    auditor 403
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
# Nothing is to be accepted: the clock is right.
OWNER_CLOCK = table("-", """
    owner   409
    admin   403
    member  403
    viewer  403
    auditor 403
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
OWNER_REMOVE = table("there unknown", """
    owner   204 404
    admin   403 403
    member  403 403
    viewer  403 403
    auditor 403 403
    node    403 403
    none    401 401
    bad     401 401
    revoked 401 401
    expired 401 401
""")
# An image that an account may use: those below may as well, and those above see it.
SEE_IMAGE = table("own sub sibling parent unknown", """
    owner   200 200 200 200 404
    admin   200 200 404 200 404
    member  200 200 404 200 404
    viewer  200 200 404 200 404
    auditor 200 200 404 200 404
    node    403 403 403 403 403
    none    401 401 401 401 401
    bad     401 401 401 401 401
    revoked 401 401 401 401 401
    expired 401 401 401 401 401
""")
OWNER_ASK = table("new", """
    owner   200
    admin   403
    member  403
    viewer  403
    auditor 403
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
OWNER_CHECK = table("new", """
    owner   204
    admin   403
    member  403
    viewer  403
    auditor 403
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")

# Money: everybody reads what is theirs, owners decide.
OWNER_SET = table("own sub sibling parent unknown", """
    owner   200 200 200 200 404
    admin   403 403 403 403 403
    member  403 403 403 403 403
    viewer  403 403 403 403 403
    auditor 403 403 403 403 403
    node    403 403 403 403 403
    none    401 401 401 401 401
    bad     401 401 401 401 401
    revoked 401 401 401 401 401
    expired 401 401 401 401 401
""")
OWNER_GIVE = {cell: 201 if status == 200 else status for cell, status in OWNER_SET.items()}

# Secrets: members keep their own in their account; one that the owner put is an admin's to remove.
PUT_SECRET = table("own sub sibling parent unknown", """
    owner   200 200 200 200 404
    admin   200 200 404 404 404
    member  200 403 404 404 404
    viewer  403 403 403 403 403
    auditor 403 403 403 403 403
    node    403 403 403 403 403
    none    401 401 401 401 401
    bad     401 401 401 401 401
    revoked 401 401 401 401 401
    expired 401 401 401 401 401
""")
REMOVE_SECRET = table("mine own sub sibling parent unknown", """
    owner   204 204 204 204 204 404
    admin   204 204 204 404 404 404
    member  204 403 403 404 404 404
    viewer  403 403 403 403 403 403
    auditor 403 403 403 403 403 403
    node    403 403 403 403 403 403
    none    401 401 401 401 401 401
    bad     401 401 401 401 401 401
    revoked 401 401 401 401 401 401
    expired 401 401 401 401 401 401
""")

# Volumes: what is in one is for those who could read it with a job, so not for who only looks.
REMOVE_FILE = {cell: 204 if status == 200 else status for cell, status in PUT_SECRET.items()}

# The folder of a job: none here came with one, so what may be read is not there.
JOB_FILES = {cell: 409 if status == 200 else status for cell, status in PUT_SECRET.items()}

# Every operation: how its address and body follow from the place, and its table.
# Ways into jobs: what runs here is simulated, so there is nothing to enter; tests/agent_forward.sh enters what runs. Whose the
# job is not is told so before.
ENTER_JOB = {cell: 409 if status in (200,) else status for cell, status in CHANGE_JOB.items()}
ENTER_JOB.update({("member", "own"): 409, ("member", "sub"): 409})
# They may watch a job whose log they may read (kind attach), so of others they hear that there is none.
ENTER_JOB.update({(role, place): 404 for role in ("viewer", "auditor") for place in ("sibling", "parent", "unknown")})
TUNNELS = table("-", """
    owner   200
    admin   200
    member  200
    viewer  200
    auditor 200
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
NO_TUNNEL = {(role, "unknown"): 404 if status == 200 else status for (role, _), status in TUNNELS.items()}
NO_UPGRADE = {(role, "unknown"): 400 if status == 200 else status for (role, _), status in TUNNELS.items()}
ROWS = [
    ("GET", "/healthz", None, OPEN),
    ("GET", "/readyz", None, OPEN),
    ("GET", "/openapi.json", None, OPEN),
    ("GET", "/metrics", None, READ),
    ("GET", "/v1/whoami", None, WHOAMI),
    ("POST", "/v1/session", None, LOGIN),
    ("DELETE", "/v1/session", None, LOGOUT),
    ("POST", "/v1/session/code", None, LOGIN_CODE),
    ("GET", "/v1/roles", None, READ),
    ("POST", "/v1/jobs", "submit", SUBMIT),
    ("POST", "/v1/jobs/batch", "batch", BATCH),
    ("GET", "/v1/jobs", "account_query", SEE),
    ("GET", "/v1/jobs/{id}", "job", SEE),
    ("DELETE", "/v1/jobs/{id}", "fresh_job", CHANGE_JOB),
    ("PATCH", "/v1/jobs/{id}", "fresh_job", CHANGE_JOB),
    ("GET", "/v1/jobs/{id}/why", "job", SEE),
    ("POST", "/v1/whatif", "whatif_job", BATCH),
    ("POST", "/v1/whatif", "whatif_account", CHANGE_ACCOUNT),
    ("GET", "/v1/jobs/{id}/logs", "job", SEE),
    ("GET", "/v1/jobs/{id}/use", "job", SEE),
    ("POST", "/v1/jobs/{id}/tunnels", "enter_job", ENTER_JOB),
    ("GET", "/v1/tunnels", None, TUNNELS),
    ("GET", "/v1/tunnels/{id}/connect", "tunnel", NO_UPGRADE),
    ("DELETE", "/v1/tunnels/{id}", "tunnel", NO_TUNNEL),
    ("GET", "/v1/arrays/{id}", "array", SEE),
    ("DELETE", "/v1/arrays/{id}", "fresh_array", CHANGE_JOB),
    ("PATCH", "/v1/arrays/{id}", "fresh_array", CHANGE_JOB),
    ("GET", "/v1/views", None, READ),
    ("PUT", "/v1/views/{name}", "new_view", READ),
    ("DELETE", "/v1/views/{name}", "view", LOGOUT),
    ("GET", "/v1/sizes", None, READ),
    ("PUT", "/v1/sizes/{name}", "new_size", OWN_PUT),
    ("DELETE", "/v1/sizes/{name}", "size", OWN_REMOVE),
    ("GET", "/v1/neighbours", None, READ),
    ("GET", "/v1/classes", None, READ),
    ("PUT", "/v1/classes/{name}", "new_class", OWNER_ONLY),
    ("DELETE", "/v1/classes/{name}", "old_class", OWNER_REMOVE),
    ("GET", "/v1/images", None, READ),
    ("GET", "/v1/images/{name}", "image", SEE_IMAGE),
    ("PUT", "/v1/images/{name}", "new_image", OWNER_ONLY),
    ("DELETE", "/v1/images/{name}", "old_image", OWNER_REMOVE),
    ("GET", "/v1/rules", None, OWNER_ONLY),
    ("PUT", "/v1/rules/{name}", "new_rule", OWNER_ONLY),
    ("DELETE", "/v1/rules/{name}", "rule", OWNER_REMOVE),
    ("POST", "/v1/rules/check", "rule_text", OWNER_CHECK),
    ("GET", "/v1/accounts", None, READ),
    ("POST", "/v1/accounts", "new_account", MAKE_IN),
    ("GET", "/v1/accounts/{name}", "account", SEE),
    ("PATCH", "/v1/accounts/{name}", "account", CHANGE_ACCOUNT),
    ("DELETE", "/v1/accounts/{name}", "old_account", REMOVE_IN),
    ("GET", "/v1/accounts/{name}/quota", "account", SEE),
    ("GET", "/v1/accounts/{name}/service-quota", "account", SEE),
    ("PATCH", "/v1/accounts/{name}/service-quota", "service_quota", CHANGE_ACCOUNT),
    ("GET", "/v1/accounts/{name}/usage", "account", SEE),
    ("GET", "/v1/users", None, READ),
    ("GET", "/v1/tokens", None, READ),
    ("POST", "/v1/tokens", "new_token", MAKE_IN),
    ("GET", "/v1/tokens/{id}", "token", SEE_TOKEN),
    ("DELETE", "/v1/tokens/{id}", "token", REVOKE_TOKEN),
    ("GET", "/v1/types", None, READ),
    ("POST", "/v1/types", "new_type", FLEET_MAKE),
    ("GET", "/v1/pools", None, READ),
    ("POST", "/v1/pools", "new_pool", FLEET_MAKE),
    ("GET", "/v1/types/{name}/limits", "type", FLEET_ONE),
    ("PATCH", "/v1/types/{name}/limits", "type", FLEET_CHANGE),
    ("GET", "/v1/pools/{name}", "pool", FLEET_ONE),
    ("PATCH", "/v1/pools/{name}", "pool", FLEET_CHANGE),
    ("GET", "/v1/devices", None, READ),
    ("GET", "/v1/devices/accounts", None, READ),
    ("GET", "/v1/devices/use", None, OWNER_ONLY),
    ("GET", "/v1/history", None, READ),
    ("GET", "/v1/counts", None, READ),
    ("GET", "/v1/series", None, READ),
    ("GET", "/v1/nodes", None, READ),
    ("POST", "/v1/nodes", "new_node", FLEET_MAKE),
    ("GET", "/v1/nodes/{name}", "node", FLEET_ONE),
    ("PATCH", "/v1/nodes/{name}", "node", FLEET_CHANGE),
    ("PATCH", "/v1/nodes/{name}/labels", "node", FLEET_CHANGE),
    ("GET", "/v1/events", "event_job", SEE),
    ("GET", "/v1/events/past", "event_job", SEE),
    ("GET", "/v1/audit", None, AUDIT),
    ("GET", "/v1/audit/verify", None, VERIFY),
    ("POST", "/v1/admin/backup", "backup", FLEET_MAKE),
]

# A node that was announced has no agent, so nothing could join again as it.
AGENTS_ONLY = table("there unknown", """
    owner   404 404
    admin   403 403
    member  403 403
    viewer  403 403
    auditor 403 403
    node    403 403
    none    401 401
    bad     401 401
    revoked 401 401
    expired 401 401
""")
ROWS += [("POST", "/v1/nodes/{name}/rejoin", "node", AGENTS_ONLY)]
# One that nobody can test is told apart from one that is not there.
ROWS += [("POST", "/v1/nodes/{name}/test", "node", {**AGENTS_ONLY, ("owner", "there"): 409}),
         ("GET", "/v1/nodes/{name}/tests", "node", FLEET_ONE),
         ("GET", "/v1/nodes/{name}/history", "node", FLEET_ONE)]
# What incidents there are, and who sees them, is in test_incidents.py; here there are none.
ROWS += [("GET", "/v1/nodes/{name}/remedies", "node", {**AGENTS_ONLY, ("owner", "there"): 200})]
INCIDENTS = {**{(role, place): FLEET_ONE[role, "unknown"] for role, place in FLEET_ONE}}
ROWS += [("GET", "/v1/incidents", None, READ), ("GET", "/v1/incidents/{id}", "node", INCIDENTS),
         ("POST", "/v1/incidents/{id}/reset", "node", AGENTS_ONLY)]
GO = table("there unknown", """
    owner   204 404
    admin   403 403
    member  403 403
    viewer  403 403
    auditor 403 403
    node    403 403
    none    401 401
    bad     401 401
    revoked 401 401
    expired 401 401
""")
ROWS += [
    ("DELETE", "/v1/nodes/{name}", "spare_node", GO),
    ("DELETE", "/v1/pools/{name}", "spare_pool", GO),
]

# What agents call is for machines: nobody else's role may, not even the owner's. A node's token
# passes here and is then asked for more: which node, an engine that has agents.
MACHINES = table("-", """
    owner   403
    admin   403
    member  403
    viewer  403
    auditor 403
    node    0
    none    401
    bad     401
    revoked 401
    expired 401
""")
ROWS += [
    ("POST", "/v1/admin/join-tokens", "join_token", FLEET_MAKE),
    ("GET", "/v1/agent/challenge", None, OPEN),
    ("POST", "/v1/agent/register", "agent", MACHINES),
    ("GET", "/v1/agent/desired", None, MACHINES),
    ("POST", "/v1/agent/status", "agent", MACHINES),
    ("POST", "/v1/agent/logs/{job}/{stay}/{task}", "agent", MACHINES),
    ("GET", "/v1/agent/tunnels/{line}", "agent", MACHINES),
]

ROWS += [
    ("GET", "/v1/accounts/{name}/plan", "account", SEE),
    ("PUT", "/v1/accounts/{name}/plan", "account", OWNER_SET),
    ("GET", "/v1/accounts/{name}/budget", "account", SEE),
    ("POST", "/v1/accounts/{name}/credits", "account", OWNER_GIVE),
    ("GET", "/v1/credits/pending", None, OWNER_ONLY),
    ("GET", "/v1/plan", None, OWNER_ONLY),
    ("PUT", "/v1/plan", None, OWNER_ONLY),
    ("GET", "/v1/prices", None, READ),
    ("POST", "/v1/prices", "new_prices", FLEET_MAKE),
    ("POST", "/v1/prices/check", "new_prices", OWNER_ASK),
    ("GET", "/v1/billing", None, READ),
    ("GET", "/v1/billing/checkpoints", None, READ),
    ("GET", "/v1/billing/checkpoints/proof", None, READ),
    ("GET", "/v1/billing/witnesses", None, READ),
    ("PUT", "/v1/billing/witnesses/{name}", "new_witness", OWNER_ONLY),
    ("DELETE", "/v1/billing/witnesses/{name}", "old_witness", OWNER_REMOVE),
    ("PUT", "/v1/billing/witnesses/{name}/head", "cosigned", COSIGN),
    ("GET", "/v1/bills", None, READ),
    ("GET", "/v1/bills/{period}", "bill", SEE),
    ("GET", "/v1/bills/{period}/entries", "bill", SEE),
    ("GET", "/v1/bills/{period}/usage", "bill", SEE),
    ("GET", "/v1/bills/{period}/forecast", "bill", SEE),
    ("POST", "/v1/admin/reconcile", None, OWNER_ONLY),
    ("GET", "/v1/admin/clock", None, OWNER_ONLY),
    ("POST", "/v1/admin/clock", None, OWNER_CLOCK),
    ("POST", "/v1/admin/reload", None, OWNER_ONLY),
    ("GET", "/v1/admin/restore", None, OWNER_ONLY),
    ("POST", "/v1/admin/restore", None, OWNER_CLOCK),
]

# No month is closed here, so there is no invoice: test_invoices.py has what others see of one.
NO_INVOICE = table("unknown", """
    owner   404
    admin   404
    member  404
    viewer  404
    auditor 404
    node    403
    none    401
    bad     401
    revoked 401
    expired 401
""")
ROWS += [
    ("PUT", "/v1/accounts/{name}/billing", "account", OWNER_SET),
    ("GET", "/v1/accounts/{name}/billing", "account", SEE),
    ("DELETE", "/v1/accounts/{name}/billing", "billing", OWNER_REMOVE),
    ("PUT", "/v1/issuer", None, OWNER_ONLY),
    ("GET", "/v1/issuer", None, OWNER_ONLY),
    ("POST", "/v1/calendar/windows", None, READ),
    ("POST", "/v1/bookings", "book", SUBMIT),
    ("GET", "/v1/bookings", "account_query", SEE),
    ("GET", "/v1/bookings/{id}", "booking", SEE),
    ("POST", "/v1/bookings/{id}/confirm", "fresh_quote", CHANGE_JOB),
    ("PATCH", "/v1/bookings/{id}", "fresh_booking", CHANGE_JOB),
    ("DELETE", "/v1/bookings/{id}", "fresh_booking", CHANGE_JOB),
    ("GET", "/v1/calendar", "account_query", SEE),
    # Its token is in the address, so what a caller is otherwise does not matter.
    ("GET", "/v1/calendar.ics", None, {key: 401 for key in READ}),
    ("POST", "/v1/calendar/feeds", None, {key: 201 if was == 200 else was for key, was in READ.items()}),
    ("GET", "/v1/invoices", "account_query", SEE),
    ("POST", "/v1/invoices", None, AGENTS_ONLY),
    ("GET", "/v1/invoices/{number}", "invoice", NO_INVOICE),
    ("GET", "/v1/bills/{period}/trial-balance", "month", OWNER_ONLY),
    ("GET", "/v1/fleet/cost", None, OWNER_ONLY),
    ("GET", "/v1/fleet/health", None, OWNER_ONLY),
]

ROWS += [
    ("GET", "/v1/accounts/{name}/secrets", "account", SEE),
    ("PUT", "/v1/accounts/{name}/secrets/{key}", "new_secret", PUT_SECRET),
    ("DELETE", "/v1/accounts/{name}/secrets/{key}", "secret", REMOVE_SECRET),
    ("POST", "/v1/admin/rotate-secrets-key", None, OWNER_ONLY),
    ("POST", "/v1/image-pulls", None, OWNER_CLOCK),  # no registries here: tests/agent_pull.sh
    ("PUT", "/v1/accounts/{name}/chunks", "account", PUT_SECRET),
    ("POST", "/v1/accounts/{name}/folders", "account", PUT_SECRET),
    ("GET", "/v1/jobs/{id}/files", "job", JOB_FILES),
    ("GET", "/v1/jobs/{id}/bytes", "job", JOB_FILES),
    ("GET", "/v1/accounts/{name}/volumes", "account", SEE),
    ("GET", "/v1/accounts/{name}/volumes/{key}", "volume_look", SEE),
    ("PUT", "/v1/accounts/{name}/volumes/{key}", "new_volume", PUT_SECRET),
    ("DELETE", "/v1/accounts/{name}/volumes/{key}", "volume", REMOVE_SECRET),
    ("GET", "/v1/accounts/{name}/volumes/{key}/files", "volume_file", PUT_SECRET),
    ("DELETE", "/v1/accounts/{name}/volumes/{key}/files", "volume_file", REMOVE_FILE),
    ("GET", "/v1/accounts/{name}/volumes/{key}/bytes", "volume_file", PUT_SECRET),
    ("PUT", "/v1/accounts/{name}/volumes/{key}/bytes", "volume_bytes", PUT_SECRET),
]

# What a service tells of itself: by those who may call it.
TELL = {cell: {200: 403 if cell[0] in ("viewer", "auditor") else 204, 404: 403 if cell[0] in ("viewer", "auditor") else 404}
        .get(status, status) for cell, status in SEE.items()}
# Before the rows that make rules, which refuse any job.
ROWS[:0] = [
    ("POST", "/v1/services", "new_service", SUBMIT),
    ("GET", "/v1/services", None, READ),
    ("GET", "/v1/services/{name}", "service", SEE),
    ("PATCH", "/v1/services/{name}", "service", CHANGE_JOB),
    ("POST", "/v1/services/{name}/restart", "service", CHANGE_JOB),
    ("POST", "/v1/services/{name}/figures", "service", TELL),
    ("DELETE", "/v1/services/{name}", "service", CHANGE_JOB),
]
TEST_NOTICE = {key: 200 if was == 204 else was for key, was in REMOVE_SECRET.items()}
ROWS += [
    ("GET", "/v1/notices", "account_query", SEE),
    ("GET", "/v1/accounts/{name}/notices/{key}", "notice", SEE),
    ("PUT", "/v1/accounts/{name}/notices/{key}", "new_notice", PUT_SECRET),
    ("DELETE", "/v1/accounts/{name}/notices/{key}", "notice", REMOVE_SECRET),
    ("POST", "/v1/accounts/{name}/notices/{key}/test", "notice", TEST_NOTICE),
]
NOTICES = "notice_hosts: 127.0.0.1:9\n"
NOTICE = {"webhook": "https://127.0.0.1:9/x"}

FILE = "?path=f&upload=1&size=1&digest=" + hashlib.sha256(b"x").hexdigest()
PARTY = {"name": "Somebody", "address": "somewhere"}
BODIES = {
    ("PUT", "/v1/accounts/{name}/billing"): PARTY,
    ("PUT", "/v1/issuer"): PARTY,
    ("POST", "/v1/image-pulls"): {"from": "registry.example/team/app:1"},
    ("PUT", "/v1/accounts/{name}/chunks"): hashlib.sha256(b"x").hexdigest() + "00000001x",
    ("POST", "/v1/accounts/{name}/folders"): {"files": []},
    ("POST", "/v1/invoices"): {"period": "1999-01"},
    ("POST", "/v1/calendar/windows"): {"from": "2026-12-01 09:00", "for": "3d", "zone": "Europe/Berlin"},
    ("PUT", "/v1/accounts/{name}/plan"): {"discount": "1%", "from": "2099-01-01"},
    ("PUT", "/v1/plan"): {"discount": "0%", "from": "2099-01-01"},
    ("POST", "/v1/accounts/{name}/credits"): {"amount": "0.01", "reason": "a try", "confirm": True},
    ("POST", "/v1/admin/clock"): {"ahead_seconds": 0},
    ("POST", "/v1/admin/restore"): {"plan": "00"},
    ("PATCH", "/v1/bookings/{id}"): {"tasks": 1},
    ("PATCH", "/v1/services/{name}"): {"drain": "1s"},
    ("POST", "/v1/services/{name}/figures"): {"queue": 1},
    ("PATCH", "/v1/jobs/{id}"): {"priority": 1},
    ("PATCH", "/v1/arrays/{id}"): {"throttle": 1},
    ("PATCH", "/v1/accounts/{name}"): {"weight": 2},
    ("PATCH", "/v1/pools/{name}"): {"oversubscribe": 2},
    ("PATCH", "/v1/types/{name}/limits"): {"peer": 0},
    ("PATCH", "/v1/nodes/{name}"): {"state": "ready"},
    ("PATCH", "/v1/nodes/{name}/labels"): {"set": {"network": "ib"}},
}


class World:
    """The accounts, somebody of each role in `own`, and things in each place."""

    NAMES = {"own": "own", "sub": "sub", "sibling": "sibling", "parent": "north",
             "unknown": "nowhere"}

    def __init__(self, stintd):
        self.stintd, self.owner, self.count = stintd, stintd.owner, 0
        owner = self.owner
        fleet(owner)
        owner.make("/v1/accounts", {"name": "north", "guarantee": {"gpu": 16}})
        owner.make("/v1/accounts", {"name": "own", "parent": "north", "guarantee": {"gpu": 8}})
        owner.make("/v1/accounts", {"name": "sub", "parent": "own"})
        owner.make("/v1/accounts", {"name": "sibling", "parent": "north"})
        self.tokens = {"owner": stintd.owner_token, "none": None, "bad": "stint_" + "A" * 43}
        for role in ("admin", "member", "viewer", "auditor"):
            self.tokens[role] = token(owner, "own", role, role)["token"]
        self.tokens["node"] = token(owner, "", "n00", "node")["token"]
        gone = token(owner, "own", "gone", "admin")
        check(owner.call("DELETE", "/v1/tokens/" + gone["id"]).status == 204, "cannot revoke")
        self.tokens["revoked"] = gone["token"]
        self.tokens["expired"] = token(owner, "own", "late", "admin", expires_in="1s")["token"]
        self.tokens["else"] = token(owner, "own", "else", "member")["token"]
        self.clients = {role: stintd.client(t) for role, t in self.tokens.items()}
        self.jobs = {p: self.job(self.NAMES[p], "someone") for p in PLACES if p != "unknown"}
        # An id that has the form of one and is none.
        self.jobs["unknown"] = "j" + ("0" * 8 if self.jobs["own"] != "j" + "0" * 8 else "1" * 8)

        self.arrays = {p: self.array(self.NAMES[p]) for p in PLACES if p != "unknown"}
        self.arrays["unknown"] = self.jobs["unknown"]

    def array(self, account, user="someone"):
        made = self.owner.make("/v1/jobs", {"name": "sweep", "account": account, "user": user,
                                            "cpu": 1, "gpus": 0, "array": {"count": 2},
                                            "sim": {"run": "7d"}})
        return made["array"]

    def booking(self, place, role, confirm=True):
        """The id of one that stands in that place; "mine" is the caller's own where it may have one."""
        if place == "unknown":
            return "b00000000"
        who, account = self.owner, self.NAMES.get(place, "own")
        if place == "mine" and role in ("admin", "member"):
            who = self.clients[role]
        elif place == "own":
            who = self.clients["else"]
        return who.make("/v1/bookings", {**self.window(), "account": account, "confirm": confirm})["id"]

    def window(self):
        """One that is nobody's yet."""
        self.count += 1
        return {"type": "h100", "gpus": 1, "from": f"+{2 * self.count + 48}h", "for": "1h"}

    # No node is so large: its replicas are refused, so nothing happens by itself.
    SERVICE = {"port": 80, "job": {"gpus": 64, "command": ["serve"]}}

    def service(self, place, role):
        """ACCOUNT/NAME of one that stands in that place; "mine" is the caller's own where it may have one."""
        account, name = self.NAMES.get(place, "own"), self.fresh("service")
        who = self.owner
        if place == "mine" and role in ("admin", "member"):
            who = self.clients[role]
        elif place == "own":
            who = self.clients["else"]
        if place != "unknown":
            who.make("/v1/services", {**self.SERVICE, "name": name, "account": account})
        return f"{account}/{name}"

    def fresh(self, prefix):
        self.count += 1
        return f"{prefix}{self.count}"

    def job(self, account, user):
        made = self.owner.make("/v1/jobs", {"name": "work", "account": account, "user": user,
                                            "cpu": 1, "gpus": 0, "sim": {"run": "7d"}})
        return made["id"]

    def token_id(self, role, place):
        if place == "unknown":
            return "t00000000"
        if place == "mine":
            account, user = ("own", role) if role != "owner" else ("", "root")
            return token(self.owner, account, user, "viewer")["id"]
        return token(self.owner, self.NAMES[place], "else", "viewer")["id"]

    def ask(self, method, pattern, how, role, place):
        """(path, body, what of the answer is only the name)"""
        body = BODIES.get((method, pattern))
        name = self.NAMES.get(place)
        path = pattern
        if how in ("submit", "batch"):
            body = {"name": "try", "account": name, "gpus": 0, "cpu": 1, "sim": {"run": "1s"}}
            if how == "batch":
                body = {"jobs": [body]}
        elif how == "book":
            body = {**self.window(), "account": name}
        elif how in ("booking", "fresh_booking", "fresh_quote"):
            name = self.booking(place, role, how != "fresh_quote")
        elif how == "whatif_job":
            body = {"job": {"gpus": 0, "cpu": 1}, "variants": [{"account": name}]}
        elif how == "whatif_account":
            body = {"accounts": [{"name": name, "weight": 2}]}
        elif how in ("account_query", "event_job"):
            name = name if how == "account_query" else self.jobs[place]
            path += ("?account=" if how == "account_query" else "?job=") + name
        elif how == "job":
            name = self.jobs[place]
        elif how == "tunnel":
            name = self.fresh("w")
        elif how == "enter_job":
            body = {"kind": "forward", "port": 80}
            name = self.jobs["unknown"] if place == "unknown" else self.job("own", role) if place == "mine" else \
                self.job(self.NAMES[place], "someone")
        elif how == "fresh_job":
            if place == "unknown":
                name = self.jobs["unknown"]
            elif place == "mine":
                name = self.job("own", role)
            else:
                name = self.job(self.NAMES[place], "someone")
        elif how == "new_account":
            body = {"name": self.fresh("a"), "parent": name}
        elif how == "service_quota":
            body = {"sizes": 999}
        elif how == "old_account":
            parent, name = name, self.fresh("a")
            if place != "unknown":
                self.owner.make("/v1/accounts", {"name": name, "parent": parent})
        elif how == "new_token":
            body = {"account": name, "user": "x", "role": "viewer"}
        elif how == "token":
            name = self.token_id(role, place)
        elif how == "new_type":
            body, name = {"name": self.fresh("type"), "vram": "80Gi"}, None
        elif how == "new_pool":
            body, name = {"name": self.fresh("pool")}, None
        elif how == "new_node":
            body, name = {"name": self.fresh("node"), "pool": "main", "gpu": "h100"}, None
        elif how in ("spare_node", "spare_pool"):
            name = self.fresh(how)
            if place == "there":
                self.owner.make("/v1/pools", {"name": name})
            if place == "there" and how == "spare_node":
                self.owner.make("/v1/nodes", {"name": name, "pool": name, "gpu": "h100"})
        elif how in ("pool", "node", "type"):
            name = {"pool": "main", "node": "n00", "type": "h100"}[how] if place == "there" else "nowhere"
        elif how == "new_prices":
            body = {"prices": self.fresh("prices"), "gpu": {"*": {"reserved": 1, "burst": 2}}}
        elif how == "bill":
            path = path.replace("{period}", "open") + "?account=" + name
        elif how == "month":
            path = path.replace("{period}", "open")
        elif how == "invoice":
            path = path.replace("{number}", "INV-000001")
        elif how == "billing":
            name = "sibling" if place == "there" else "nowhere"
            if place == "there":
                self.owner.call("PUT", "/v1/accounts/sibling/billing", PARTY)
        elif how == "join_token":
            body = {"uses": 1}
        elif how == "agent":
            body, path = {}, re.sub(r"\{\w+\}", "0", path)
        elif how == "array":
            name = self.arrays[place]
        elif how == "fresh_array":
            if place == "unknown":
                name = self.arrays["unknown"]
            elif place == "mine":
                name = self.array("own", role)
            else:
                name = self.array(self.NAMES[place])
        elif how in ("new_size", "size"):
            name, body = self.fresh("size"), {"gpus": 1}
            if how == "size":
                body = None
            if place == "there":
                self.clients[role].call("PUT", "/v1/sizes/" + name, {"gpus": 1})
        elif how in ("new_view", "view"):
            name, body = self.fresh("view"), {"page": "jobs", "query": ""}
            if how == "view":
                self.clients[role].call("PUT", "/v1/views/" + name, body)
                body = None
        elif how in ("new_class", "old_class"):
            name = self.fresh("class")
            body = {"lowest": 1, "highest": 9, "priority": 5} if how == "new_class" else None
            if place == "there":
                self.owner.call("PUT", "/v1/classes/" + name, {"lowest": 1, "highest": 9, "priority": 5})
        elif how in ("image", "new_image", "old_image"):
            account, name = name, self.fresh("image")
            body = {"folder": "/srv/image", "accounts": "all"} if how == "new_image" else None
            if how == "image" and place != "unknown":
                self.owner.call("PUT", "/v1/images/" + name, {"folder": "/srv/image", "accounts": [account]})
            if place == "there":
                self.owner.call("PUT", "/v1/images/" + name, {"folder": "/srv/image", "accounts": "all"})
        elif how in ("new_witness", "old_witness"):
            name = self.fresh("witness")
            body = {"key": WITNESS_KEYS.pop()} if how == "new_witness" and role == "owner" else {"key": "00" * 32}
            body = body if how == "new_witness" else None
            if place == "there":
                self.owner.call("PUT", "/v1/billing/witnesses/" + name, {"key": WITNESS_KEYS.pop()})
        elif how == "cosigned":
            name, body = self.fresh("witness"), COSIGNED
        elif how in ("new_rule", "rule", "rule_text"):
            name = self.fresh("rule")
            body = None if how == "rule" else "function submit(job) return job end"
            if place == "there":
                self.owner.call("PUT", "/v1/rules/" + name, "function submit(job) return job end")
        elif how in ("new_secret", "secret"):
            name = "own" if place == "mine" else name
            key, body = self.fresh("key"), "a value" if how == "new_secret" else None
            path = path.replace("{key}", key)
            if how == "secret" and place != "unknown":
                who = self.clients[role] if place == "mine" else self.owner
                who.call("PUT", f"/v1/accounts/{name}/secrets/{key}", "a value")
        elif how in ("new_notice", "notice"):
            name = "own" if place == "mine" else name
            key, body = self.fresh("notice"), NOTICE if how == "new_notice" else None
            path = path.replace("{key}", key)
            if how == "notice" and place != "unknown":
                who = self.clients[role] if place == "mine" else self.owner
                who.call("PUT", f"/v1/accounts/{name}/notices/{key}", NOTICE)
        elif how in ("new_volume", "volume", "volume_look", "volume_file", "volume_bytes"):
            name = "own" if place == "mine" else name
            key = self.fresh("key")
            body = {"size": "1Gi"} if how == "new_volume" else None
            path = path.replace("{key}", key)
            stands = f"/v1/accounts/{name}/volumes/{key}"
            if how != "new_volume" and place != "unknown":
                who = self.clients[role] if place == "mine" else self.owner
                who.call("PUT", stands, {"size": "1Gi"})
            if how == "volume_file" and place != "unknown":
                self.owner.call("PUT", stands + "/bytes" + FILE, b"x")
            if how == "volume_file":
                path += "?path=f"
            if how == "volume_bytes":
                path, body = path + FILE, "x"
        elif how == "backup":
            body = {"file": self.fresh("copy")}
        elif how == "new_service":
            body = {**self.SERVICE, "name": self.fresh("service"), "account": name}
        elif how == "service":
            name = self.service(place, role)
            path = path.replace("{name}", name.replace("/", "%2F"))
        path = path.replace("{id}", name or "").replace("{name}", name or "")
        return path, body, name


def sentence(answer, name):
    """What a refusal says, without what differs between any two requests."""
    text = answer.text.replace(name, "NAME") if name else answer.text
    return re.sub(r'"instance":\s*"[^"]*"', '"instance":""', text)


def stream_status(world, role, path):
    """The status of an event stream, without waiting for it to end."""
    client = world.stintd.client(world.tokens[role])
    import http.client

    conn = http.client.HTTPConnection("127.0.0.1", world.stintd.port, timeout=30)
    headers = {"Authorization": "Bearer " + client.token} if client.token else {}
    conn.request("GET", path, headers=headers)
    answer = conn.getresponse()
    status = answer.status
    body = answer.read() if status != 200 else b""
    conn.close()
    from harness import Answer

    return Answer(status, answer.getheaders(), body)


def item_status(answer):
    """A batch of one, or one variant of what-if: what became of the job, as a status."""
    if answer.status not in (200, 201):
        return answer.status
    code = (answer.json.get("jobs") or answer.json["answers"])[0].get("code")
    return {None: 201, "not_found": 404, "forbidden": 403}.get(code, code)


def play(world, method, pattern, how, cells):
    wrong, refusals = [], {}
    for (role, place), expected in cells.items():
        path, body, name = world.ask(method, pattern, how, role, place)
        headers = {"If-Match": "*"} if method == "PATCH" else {}
        if how == "event_job":
            answer = stream_status(world, role, path)
        else:
            answer = world.clients[role].call(method, path, body, headers)
        got = item_status(answer) if how in ("batch", "whatif_job") else answer.status
        if expected == 0:
            check(got not in (401, 200, 500), "%s %s as %s: %d", method, path, role, got)
        elif got != expected:
            wrong.append(f"{method} {path} as {role} ({place}): {got}, expected {expected}: "
                         f"{answer.text[:160]}")
        if got == 404:
            refusals.setdefault(role, {})[place] = sentence(answer, name)
        if got in (401, 403) and how not in ("batch", "whatif_job") and answer.header("Content-Type") is not None:
            check(answer.header("Content-Type") == "application/problem+json",
                  "%s %s as %s: a refusal is no problem document", method, path, role)
    for role, said in refusals.items():
        if len(set(said.values())) > 1:
            wrong.append(f"{method} {pattern} as {role}: what is not there and what is not theirs "
                         f"differ: {said}")
    return wrong


def operations(stintd):
    document = stintd.client().get("/openapi.json").json
    return {(method.upper(), path) for path, item in document["paths"].items() for method in item
            if method in ("get", "post", "put", "patch", "delete")}


def check_lists(world):
    """Lists have what is in the subtree and nothing else."""
    wrong = []
    for role in ("admin", "member", "viewer", "auditor"):
        c = world.clients[role]
        accounts = {a["name"] for a in c.get("/v1/accounts").json["accounts"]}
        if not accounts >= {"own", "sub"} or accounts & {"north", "sibling"}:
            wrong.append(f"accounts of {role}: {sorted(accounts)}")
        seen = {j["account"] for j in c.get("/v1/jobs?limit=1000").json["jobs"]}
        if seen & {"north", "sibling"}:
            wrong.append(f"jobs of {role}: {sorted(seen)}")
        users = {u["account"] for u in c.get("/v1/users").json["users"]}
        if users & {"north", "sibling", ""}:
            wrong.append(f"users of {role}: {sorted(users)}")
        tokens = c.get("/v1/tokens").json["tokens"]
        if {t["account"] for t in tokens} & {"north", "sibling", ""}:
            wrong.append(f"tokens of {role}")
        if role in ("member", "viewer") and {t["user"] for t in tokens} != {role}:
            wrong.append(f"tokens of {role} are not its own")
    for role in ("admin", "auditor"):
        rows = world.clients[role].get("/v1/audit?limit=1000").json["rows"]
        if {r["account"] for r in rows} & {"north", "sibling", ""}:
            wrong.append(f"audit of {role}")
        if any("root" in r["actor"] or r["source"] for r in rows if r["verb"] == "job.cancel"
               and r["actor"] not in ("admin", "member")):
            wrong.append(f"audit of {role} names those above")
    return wrong


# What nobody below `north` or beside it may read: whole words, and amounts as they would be written.
SECRETS = ["north", "sibling", "stranger", "windfall", "73.19", "73190000", "4141.41", "4141410000",
           "61.61", "61610", "8888.88", "8888880000", "52.52", "52520"]


def money_paths(world):
    jobs = f"/v1/bills/open/entries?job={world.jobs['sibling']}"
    yield from ["/metrics", "/v1/prices", "/v1/bills", "/v1/billing", jobs]
    for account in ("own", "sub"):
        yield f"/v1/accounts/{account}/plan"
        yield f"/v1/accounts/{account}/budget"
        for form in ("json", "csv", "html", "focus", "file"):
            yield f"/v1/bills/open?account={account}&format={form}"
        for form in ("json", "csv"):
            yield f"/v1/bills/open/entries?account={account}&limit=1000&format={form}"
        yield f"/v1/bills/open/entries?account={account}&limit=1&cursor=1"
        for by in ("account", "user", "gpu", "level", "job"):
            yield f"/v1/bills/open/usage?account={account}&by={by}"


def check_money(world):
    """Bills, plans and refusals by caps tell nothing of those above and beside."""
    wrong, owner = [], world.owner
    for rule in owner.get("/v1/rules").json["rules"]:
        owner.call("DELETE", "/v1/rules/" + rule["name"])
    watch = Stream(world.stintd.port, world.tokens["admin"])
    owner.make("/v1/prices", {"prices": "dear", "gpu": {"*": {"reserved": 0, "burst": 7000,
                                                             "guaranteed": 7000}}})
    works = []
    for account in ("own", "sibling"):
        works += [owner.make("/v1/jobs", {"name": "work", "account": account, "gpus": 1, "sim": {"run": "1s"},
                                "user": "stranger" if account == "sibling" else "mate"})["id"]]
    owner.make("/v1/accounts/sibling/credits", {"amount": "4141.41", "reason": "windfall", "confirm": True})
    world.stintd.wait(lambda: all(owner.get("/v1/jobs/" + job).json["state"] == "done" for job in works),
                      "what is billed has ended, and holds no money: more than the cap allows")
    # What holds for all, announced before the parent's, is nobody's to read either.
    for path, plan in (("/v1/plan", {"cap": "8888.88", "burst": 52.52, "discount": "1.5%"}),
                       ("/v1/accounts/north/plan", {"cap": "73.19", "budget": "0.01", "burst": 61.61, "discount": "2.5%"})):
        answer = owner.call("PUT", path, plan)
        check(answer.status == 200, "PUT %s: %d %s", path, answer.status, answer.text)
    for role in ("admin", "member", "viewer", "auditor"):
        client = world.clients[role]
        for path in money_paths(world):
            answer = client.get(path)
            check(answer.status == 200, "GET %s as %s: %d %s", path, role, answer.status, answer.text)
            for word in SECRETS:
                if re.search(r"(?<![\w.])" + re.escape(word) + r"(?![\w.])", answer.text):
                    wrong.append(f"GET {path} as {role} says {word}")
    plan = world.clients["member"].get("/v1/accounts/own/plan").json
    if not (plan["inherited"] and plan["discount_percent"] == 2.5 and plan["of"] is None
            and plan["cap"] is None and plan["burst_gpus"] is None):
        wrong.append(f"the plan from above: {plan}")
    job = {"name": "dear", "account": "own", "gpus": 1, "limit": "1h"}
    tries = [("POST", "/v1/jobs", job), ("POST", "/v1/jobs/batch", {"jobs": [job]}),
             ("POST", "/v1/jobs?dry_run=true", job)]
    for method, path, body in tries:
        answer = world.clients["member"].call(method, path, body)
        if "an account above yours has a spend cap" not in answer.text:
            wrong.append(f"{path} beyond a cap from above: {answer.status} {answer.text}")
        for word in SECRETS:
            if word in answer.text:
                wrong.append(f"{path} beyond a cap from above says {word}: {answer.text}")
    answer = owner.post("/v1/jobs", job)
    if answer.code != "budget" or "the cap of north is $73.19" not in answer.text:
        wrong.append(f"the owner is not told the cap: {answer.text}")
    if any(event == "budget" for _, event, _ in watch.events()):
        wrong.append("a warning about the budget of north went to own")
    watch.close()
    return wrong


def run(program):
    stintd = Stintd(program, more=NOTICES)
    try:
        world = World(stintd)
        there, listed = operations(stintd), {(m, p) for m, p, _, _ in ROWS}
        check(there == listed, "routes without a row: %s; rows without a route: %s",
              sorted(there - listed), sorted(listed - there))
        stintd.wait(lambda: world.clients["expired"].get("/v1/jobs").status == 401, "the token that expires has")
        wrong, cells = [], 0
        for method, pattern, how, expected in ROWS:
            cells += len(expected)
            if how in (None, "new_rule", "new_witness", "cosigned", "agent"):
                expected = {(role, "-"): status for (role, _), status in expected.items()}
            wrong += play(world, method, pattern, how, expected)
        wrong += check_lists(world)
        wrong += check_money(world)
        if wrong:
            raise Failure(f"{len(wrong)} of {cells} cells:\n" + "\n".join(wrong))
        print(f"{len(ROWS)} routes, {len(ROLES)} roles, {cells} cells hold")
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
