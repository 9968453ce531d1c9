"""MIG: slices carved for each job and gone with it."""
import time

from cluster import Trouble, until
from context import decided_ms, start_ms
from report import pairs

# Profile: MiB, SMs (measured by hand before).
SLICES = {"1g": (16384, 16), "2g": (33280, 32), "3g": (71424, 60)}


def one(test, profile):
    cluster, report = test.cluster, test.report
    began = time.time()
    row, text = cluster.run(f"mig-{profile}", test.work("info"), level="mig", profile=profile)
    if test.refused(f"a job in a {profile}", row):
        return False
    seen = pairs(text)
    mib, sms = SLICES[profile]
    if not report.check(f"a job in a {profile} computes", row["state"] == "done" and seen.get("compute") == "ok",
                        f"{row['state']}: {row.get('reason') or ''} {'' if 'compute' in seen else text[-200:]}"):
        return False
    took = start_ms(row, text)
    report.check(f"{profile}: carved, from decision to first instruction", test.sim or took < 500, f"{took:.0f} ms",
                 "< 500 ms")
    carved = cluster.said.find("event=carved .*made=[1-9]", began)
    if carved:
        report.figure(f"{profile}: agent said carved",
                      f"{carved[0][0] * 1e3 - decided_ms(row):.0f} ms after the decision")
    if not test.sim:
        report.check(f"{profile}: its size as CUDA sees it",
                     abs(int(seen.get("memory_mib", 0)) - mib) < 0.06 * mib and int(seen.get("sms", 0)) == sms,
                     f"{seen.get('memory_mib')} MiB, {seen.get('sms')} SMs, {test.part_of_whole(seen)}",
                     f"{mib} MiB, {sms} SMs")
    return report.check(f"{profile}: gone afterwards", test.slices_gone() and removed(test, began), "no instance left")


def removed(test, since):
    try:
        until(lambda: test.cluster.said.find("event=carved .*removed=[1-9]", since), 10, "nothing was removed")
    except Trouble:
        return False
    return True


def together(test):
    """Three slices at once on one GPU."""
    cluster = test.cluster
    jobs = {p: cluster.submit(f"beside-{p}", test.work("load", "copy", 3, 4000), level="mig", profile=p,
                              account="lab-a" if p != "2g" else "other") for p in SLICES}
    for job in jobs.values():
        cluster.writes(job, r"^\d+$", 20)
    if not test.sim:
        test.report.check("1g, 2g and 3g beside each other, two tenants", test.machine.instances() == 3,
                          f"{test.machine.instances()} instances", "3")
    for profile, job in jobs.items():
        test.ended_well(f"the {profile} of them", job)


def run(test):
    if test.leave_settings:
        test.report.skip("MIG", "the settings of the GPU are to be left alone")
        return
    for profile in SLICES:
        if not one(test, profile):
            return
    together(test)
    test.slices_gone()
    job = test.cluster.submit("carving", test.work("info"), level="mig", profile="3g")
    time.sleep(0.12)
    test.crash("while it carves")
    test.ended_well("the job it was carving for", job)
    test.report.check("nothing is left of it", test.slices_gone(), "no instance left" if test.slices_gone() else
                      f"{test.machine.instances()} instances")
