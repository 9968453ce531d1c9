"""A job that faults: the event is noticed, the neighbour and the node are unharmed."""
import time

from cluster import Trouble, until


def run(test):
    cluster, report = test.cluster, test.report
    share = {"level": "time", "share": 1, "vram": "20Gi"}
    neighbour = cluster.submit("neighbour", test.work("load", "copy", 8, 4000), account="lab-a", **share)
    cluster.writes(neighbour, r"^\d+$")
    began = time.time()
    bad = cluster.submit("bad", test.work("load", "fault", 1, 64), account="lab-b", **share)
    if test.sim:
        cluster.fault("xid 31")
    row, text = cluster.finish(bad)
    report.check("a job that reads out of bounds has failed", row["state"] == "failed", text[-100:])
    try:
        until(lambda: cluster.said.find("event=gpu-event .*kind=xid value=31", began), 8, "no event")
        at = cluster.said.find("event=gpu-event .*kind=xid value=31", began)[0][0]
        report.check("the agent notices XID 31", True, f"{at - began:.1f} s after the submit", "XID 31")
    except Trouble as e:
        report.check("the agent notices XID 31", False, e, "XID 31")
    report.check("the node stays in use", cluster.node_ready(), cluster.node()["state"])
    test.crash("after a fault")
    test.ended_well("its neighbour on the same GPU", neighbour)
