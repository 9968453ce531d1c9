"""Tests of nodes over the agent's protocol: each is asked for until its answer was taken, and no longer.

What a test finds need not change the node's state: one in repair stays in repair, one that somebody drained goes on draining.
"""

from harness import Stintd, check, main
from node import Node


def result(number, passed):
    return {"no": number, "level": "quick", "passed": passed, "ms": 1, **({} if passed else {"reason": "GPU 0: errors"}),
            "results": [{"check": "ecc", "gpu": 0, "verdict": "pass" if passed else "fail", "value": 0, "limit": 0}]}


def asked(node, **said):
    """The number of the test that stintd wants."""
    answer = node.status(**said)
    check(answer.status == 200, "a status: %d %s", answer.status, answer.text)
    return answer.json.get("test")


def played(stintd, node, number, passed):
    """The test is asked for; what it found is told until nobody asks any more."""
    stintd.wait(lambda: asked(node) == number, f"test {number} is asked for")
    stintd.wait(lambda: asked(node, test=result(number, passed)) is None, f"test {number} is asked for although it was told")
    tests = stintd.owner.get(f"/v1/nodes/{node.name}/tests").json["tests"]
    check([t["test"] for t in tests] == list(range(1, number + 1)), "%s", tests)
    check(asked(node, test=result(number, not passed)) is None, "what is told twice counts twice")


def run(program):
    stintd = Stintd(program)
    owner = stintd.owner
    try:
        owner.make("/v1/types", {"name": "l4", "vram": "24Gi"})
        owner.make("/v1/pools", {"name": "main", "allow": ["host-image"]})
        join = owner.make("/v1/admin/join-tokens", {"pool": "main", "uses": 1})["token"]
        node = Node(stintd.port, "n1", gpu={"type": "l4", "count": 1, "vram": "24Gi", "uuids": ["GPU-1"]}, labels={"tests": "quick"})
        check(node.register(join).status == 201, "the node does not join")
        state = lambda: owner.get("/v1/nodes/n1").json["state"]
        again = lambda: check(owner.call("POST", "/v1/nodes/n1/test").status in (200, 202), "a test is refused")
        for number, passed, then in ((1, False, "repair"), (2, False, "repair"), (3, True, "ready"), (4, True, "ready")):
            if number > 1:
                again()
            played(stintd, node, number, passed)
            check(state() == then, "after test %d the node is %s, not %s", number, state(), then)
        check(owner.call("PATCH", "/v1/nodes/n1", {"state": "draining"}).status == 200, "it does not drain")
        for number, passed in ((5, True), (6, False)):
            again()
            played(stintd, node, number, passed)
            check(state() in ("draining", "drained"), "a test undid what the owner said: %s", state())
    finally:
        stintd.stop()


if __name__ == "__main__":
    main(run)
