#!/usr/bin/env python3
"""compare.py SHOW SAMPLE XML: does stint-gpu-probe say what nvidia-smi -q -x says?

One line for each thing: name, ours, theirs, same or DIFFERENT. Things that move between two
readings may differ by the tolerance given. Exit status 1 when something differs that may not.
"""
import json
import sys
import xml.etree.ElementTree as ET

show = json.loads(open(sys.argv[1]).read().strip().split("\n")[-1])
sample = json.loads(open(sys.argv[2]).read().strip().split("\n")[-1])
smi = ET.parse(sys.argv[3]).getroot()
gpu, ours = smi.find("gpu"), show["gpus"][0]
bad = 0


def theirs(path):
    node = gpu.find(path)
    return None if node is None or node.text in ("N/A", None) else node.text.strip()


def number(text):
    try:
        return float(text.split()[0].rstrip("x"))
    except (AttributeError, ValueError, IndexError):
        return None


def row(name, a, b, same):
    global bad
    bad += not same
    print(f"{name:22} {a!s:42} {b!s:42} {'same' if same else 'DIFFERENT'}")


def text(name, a, path):
    b = theirs(path)
    row(name, a, b, (a or None) == b)


def value(name, a, path, slack=0.0):
    b = number(theirs(path))
    if a is None or a == -1:
        row(name, "absent", b, b is None)
    else:
        row(name, a, b, b is not None and abs(a - b) <= slack)


row("driver", show["version"], smi.findtext("driver_version"),
    show["version"] == smi.findtext("driver_version"))
cuda = f"{show['cuda'] // 1000}.{show['cuda'] % 1000 // 10}"
row("CUDA", cuda, smi.findtext("cuda_version"), cuda == smi.findtext("cuda_version"))
text("name", ours["name"], "product_name")
row("UUID", "(not shown)", "", ours["uuid"] == theirs("uuid"))
row("serial", "(not shown)", "", (ours["serial"] or None) == theirs("serial"))
row("PCI bus", ours["bus_id"].upper(), gpu.get("id").upper(), ours["bus_id"].upper() == gpu.get("id").upper())
value("minor", ours["minor"], "minor_number")
value("memory MiB", ours["vram_mib"], "fb_memory_usage/total")
value("PCIe gen", ours["pcie_gen"], "pci/pci_gpu_link_info/pcie_gen/current_link_gen")
value("PCIe gen max", ours["pcie_gen_max"], "pci/pci_gpu_link_info/pcie_gen/max_link_gen")
value("PCIe width", ours["pcie_width"], "pci/pci_gpu_link_info/link_widths/current_link_width")
row("MIG", ours["mig_on"], theirs("mig_mode/current_mig"),
    ("Enabled" if ours["mig_on"] else "Disabled") == theirs("mig_mode/current_mig"))
D = "DCGM_FI_DEV_"
value("memory used", sample.get(D + "FB_USED"), "fb_memory_usage/used", 64)
value("memory reserved", sample.get(D + "FB_RESERVED"), "fb_memory_usage/reserved", 1)
value("utilisation %", sample.get(D + "GPU_UTIL"), "utilization/gpu_util", 10)
value("power W", sample.get(D + "POWER_USAGE"), "gpu_power_readings/instant_power_draw", 60)
value("power limit W", sample.get(D + "ENFORCED_POWER_LIMIT"), "gpu_power_readings/current_power_limit")
value("temperature C", sample.get(D + "GPU_TEMP"), "temperature/gpu_temp", 3)
value("memory temp C", sample.get(D + "MEMORY_TEMP"), "temperature/memory_temp", 3)
value("SM clock MHz", sample.get(D + "SM_CLOCK"), "clocks/sm_clock", 250)
value("memory clock MHz", sample.get(D + "MEM_CLOCK"), "clocks/mem_clock", 1)
value("remapped corrected", sample.get(D + "CORRECTABLE_REMAPPED_ROWS"), "remapped_rows/remapped_row_corr")
value("remapped uncorr.", sample.get(D + "UNCORRECTABLE_REMAPPED_ROWS"), "remapped_rows/remapped_row_unc")
value("PCIe replays", sample.get(D + "PCIE_REPLAY_COUNTER"), "pci/replay_counter")
sys.exit(1 if bad else 0)
