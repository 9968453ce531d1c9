"""The machine under test: its GPU as nvidia-smi sees it, the workloads, and its state at the end."""
import glob
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET

HERE = os.path.dirname(os.path.abspath(__file__))
WORKLOADS = ["load", "info", "victim", "pattern", "train"]
NVCC = ["nvcc", "/usr/local/cuda/bin/nvcc"]
# Libraries of the driver that a CUDA program loads, and where they are looked for.
LIBRARIES = ["libcuda.so*", "libnvidia-ml.so*", "libnvidia-ptxjitcompiler.so*", "libnvidia-gpucomp.so*"]
LIBRARY_DIRS = ["/usr/local/nvidia/lib64", "/usr/local/nvidia/lib", "/usr/lib/x86_64-linux-gnu", "/usr/lib64"]


def call(command, timeout=60, log=None, env=None):
    """Its exit status and everything it said; 124 when it took too long. Never raises."""
    try:
        done = subprocess.run(command, timeout=timeout, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              stdin=subprocess.DEVNULL, env=env)
        status, text = done.returncode, done.stdout.decode(errors="replace")
    except subprocess.TimeoutExpired as e:
        status, text = 124, (e.stdout or b"").decode(errors="replace")
    except OSError as e:
        status, text = 127, str(e)
    if log:
        with open(log, "a") as f:
            f.write(f"$ {' '.join(command)}\n{text}# exit status {status}\n\n")
    return status, text


def find_program(folder, name):
    """A folder with everything, or a build folder, where what is not installed is in tests/."""
    path = os.path.join(folder, name)
    return path if os.path.exists(path) else os.path.join(folder, "tests", name)


class Machine:
    def __init__(self, programs, logs, sim=None, more=()):
        self.programs, self.logs, self.sim = programs, logs, sim
        self.more = list(more)  # options of the agent that the caller wants
        self.place = f"/opt/stint-gpu-test.{os.getpid()}"  # seen by jobs whose image is the host

    def program(self, name):
        return find_program(self.programs, name)

    def agent_options(self):
        return (["--sim", self.sim] if self.sim else []) + self.more

    def log(self, name):
        return os.path.join(self.logs, name)

    def probe(self, *words, timeout=60, log="probe.log"):
        driver = ["--driver", "sim:" + self.sim] if self.sim else []
        return call([self.program("stint-gpu-probe"), *driver, *words], timeout, self.log(log))

    # ---- nvidia-smi ------------------------------------------------------------------------

    def query(self, *fields):
        """{field: text} of the first GPU; empty when there is none."""
        if self.sim:
            return {}
        status, text = call(["nvidia-smi", "--query-gpu=" + ",".join(fields), "--format=csv,noheader,nounits"], 30,
                            self.log("smi.log"))
        values = text.strip().split("\n")[0].split(", ")
        return dict(zip(fields, values)) if status == 0 and len(values) == len(fields) else {}

    def xml(self, path=None):
        """nvidia-smi -q -x, its <gpu>; None when there is none."""
        if self.sim:
            return None
        status, text = call(["nvidia-smi", "-q", "-x"], 30)
        if path:
            with open(path, "w") as f:
                f.write(text)
        try:
            return ET.fromstring(text).find("gpu") if status == 0 else None
        except ET.ParseError:
            return None

    def instances(self):
        """How many MIG devices nvidia-smi lists; None without a GPU."""
        if self.sim:
            return None
        return sum("MIG" in line for line in call(["nvidia-smi", "-L"], 30)[1].splitlines())

    # ---- workloads -------------------------------------------------------------------------

    def make_workloads(self, ready=None):
        """Puts the workloads where jobs see them; says how they came about. `ready` has them built."""
        os.makedirs(self.place, exist_ok=True)
        os.chmod(self.place, 0o755)
        if self.sim:
            for name in WORKLOADS:
                shutil.copy(os.path.join(HERE, "standin.sh"), os.path.join(self.place, name))
                os.chmod(os.path.join(self.place, name), 0o755)
            return "stand-ins, for there is no GPU"
        nvcc = next((p for p in map(shutil.which, NVCC) if p), None)
        failed = self.compile(nvcc) if nvcc else WORKLOADS
        for name in failed:
            source = os.path.join(ready or self.programs, name)
            if os.path.exists(source):
                shutil.copy(source, os.path.join(self.place, name))
        missing = [n for n in WORKLOADS if not os.path.exists(os.path.join(self.place, n))]
        if missing:
            raise RuntimeError(f"no {', '.join(missing)}: neither built here ({nvcc or 'no nvcc'}) nor carried")
        return f"built with {nvcc}" if not failed else f"carried: {', '.join(failed)}"

    def compile(self, nvcc):
        """Those that could not be built."""
        running = {name: subprocess.Popen([nvcc, "-O3", "-arch=sm_90", "-o", os.path.join(self.place, name),
                                           os.path.join(HERE, name + ".cu")], stdout=subprocess.PIPE,
                                          stderr=subprocess.STDOUT) for name in WORKLOADS}
        failed = []
        for name, process in running.items():
            try:
                text = process.communicate(timeout=90)[0].decode(errors="replace")
            except subprocess.TimeoutExpired:
                process.kill()
                text = "it took too long"
            with open(self.log("build.log"), "a") as f:
                f.write(f"{name}: {process.poll()}\n{text}\n")
            if process.poll() != 0:
                failed.append(name)
        return failed

    def work(self, name, *arguments):
        """The command of a job."""
        return [os.path.join(self.place, name), *map(str, arguments)]

    def carry_libraries(self):
        """Copies the driver's libraries to where jobs see them, for machines that mount them apart."""
        to = os.path.join(self.place, "lib")
        os.makedirs(to, exist_ok=True)
        for pattern in LIBRARIES:
            for folder in LIBRARY_DIRS:
                found = glob.glob(os.path.join(folder, pattern))
                for path in found:
                    target = os.path.join(to, os.path.basename(path))
                    if os.path.islink(path):
                        os.path.lexists(target) or os.symlink(os.path.basename(os.path.realpath(path)), target)
                        real = os.path.join(to, os.path.basename(os.path.realpath(path)))
                        os.path.exists(real) or shutil.copy(os.path.realpath(path), real)
                    else:
                        os.path.exists(target) or shutil.copy(path, target)
                if found:
                    break
        return to

    # ---- the end ---------------------------------------------------------------------------

    def restore(self):
        """No instances, MIG off, compute mode default; what could not be."""
        left = []
        shutil.rmtree(self.place, ignore_errors=True)
        if self.sim:
            return left
        now = self.query("mig.mode.current", "compute_mode")
        if now.get("mig.mode.current") == "Enabled":
            self.probe("carve", "", log="end.log")
            self.probe("mig", "off", log="end.log")
        if now.get("compute_mode", "Default") != "Default":
            self.probe("mode", "0", log="end.log")
        now = self.query("mig.mode.current", "compute_mode")
        if now.get("mig.mode.current") not in ("Disabled", "[N/A]") or now.get("compute_mode") != "Default":
            left.append(f"the GPU is left as {now}")
        return left
