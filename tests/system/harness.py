# SPDX-License-Identifier: Apache-2.0
"""A whole Assay world in one temporary directory: TPMs, a verifier, machines with agent and relay. Standard library
only. Ends exactly the processes that it started, by their ids."""
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))


class Failure(Exception):
    pass


def run(argv, check=True, timeout=60, env=None, text_input=None):
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, env=env, input=text_input, check=False)
    if check and done.returncode != 0:
        raise Failure(f"{os.path.basename(argv[0])} exited {done.returncode}: {(done.stderr or done.stdout).strip()[-600:]}")
    return done


def wait_for(what, predicate, timeout=20.0):
    end = time.monotonic() + timeout
    while time.monotonic() < end:
        value = predicate()
        if value:
            return value
        time.sleep(0.02)
    raise Failure(f"timed out waiting for {what}")


class Process:
    """One daemon with its output in a file."""

    def __init__(self, argv, log_path, env=None):
        self.name = os.path.basename(argv[0])
        self.log_path = log_path
        self.log = open(log_path, "ab")
        self.popen = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log, env=env)

    def output(self):
        with open(self.log_path, encoding="utf-8", errors="replace") as handle:
            return handle.read()

    def alive(self):
        return self.popen.poll() is None

    def stop(self, sig=signal.SIGTERM, timeout=20):
        if self.alive():
            self.popen.send_signal(sig)
            try:
                self.popen.wait(timeout)
            except subprocess.TimeoutExpired:
                self.popen.kill()
                self.popen.wait()
        self.log.close()
        return self.popen.returncode


class Manufacturer:
    """A CA that certifies endorsement keys, as swtpm_localca makes it."""

    def __init__(self, directory):
        self.directory = directory
        os.makedirs(directory, mode=0o700)
        with open(self.path("localca.conf"), "w", encoding="utf-8") as out:
            out.write(f"statedir = {directory}\nsigningkey = {directory}/signkey.pem\nissuercert = {directory}/issuercert.pem\n"
                      f"certserial = {directory}/certserial\n")
        open(self.path("localca.options"), "w", encoding="utf-8").close()
        with open(self.path("setup.conf"), "w", encoding="utf-8") as out:
            out.write(f"create_certs_tool = {shutil.which('swtpm_localca')}\ncreate_certs_tool_config = {directory}/localca.conf\n"
                      f"create_certs_tool_options = {directory}/localca.options\nactive_pcr_banks = sha256\n")

    def path(self, name):
        return os.path.join(self.directory, name)

    def make_tpm(self, state):
        os.makedirs(state, mode=0o700)
        run(["swtpm_setup", "--tpm2", "--tpmstate", state, "--config", self.path("setup.conf"), "--create-ek-cert", "--lock-nvram", "--overwrite"])

    @property
    def root(self):
        return self.path("swtpm-localca-rootca-cert.pem")

    @property
    def intermediate(self):
        return self.path("issuercert.pem")


class Tpm:
    """A software TPM. `state` is its non-volatile memory: a copy of it is a clone of the TPM."""

    def __init__(self, directory, maker):
        self.directory = directory
        self.state = os.path.join(directory, "state")
        self.socket = os.path.join(directory, "tpm.sock")
        os.makedirs(directory, mode=0o700, exist_ok=True)
        if maker is not None:
            maker.make_tpm(self.state)
        self.process = None

    @property
    def tcti(self):
        return "swtpm:path=" + self.socket

    def power_on(self):
        for stale in (self.socket, self.socket + ".ctrl"):
            if os.path.exists(stale):
                os.unlink(stale)
        self.process = Process(["swtpm", "socket", "--tpm2", "--tpmstate", "dir=" + self.state, "--server", "type=unixio,path=" + self.socket,
                                "--ctrl", "type=unixio,path=" + self.socket + ".ctrl", "--flags", "startup-clear"],
                               os.path.join(self.directory, "swtpm.log"))
        wait_for("swtpm", lambda: os.path.exists(self.socket) and os.path.exists(self.socket + ".ctrl"))

    def tool(self, *argv, check=True):
        return run([argv[0], *argv[1:]], env=dict(os.environ, TPM2TOOLS_TCTI=self.tcti, TSS2_LOG="all+none"), check=check)

    def power_off(self):
        """An orderly end: TPM2_Shutdown, then off."""
        self.tool("tpm2_shutdown", "--clear")
        self.process.stop()

    def cut_power(self):
        self.process.stop(signal.SIGKILL)

    def reboot(self):
        self.power_off()
        self.power_on()

    def copy_state(self, target):
        shutil.copytree(self.state, target)

    def restore_state(self, source):
        shutil.rmtree(self.state)
        shutil.copytree(source, self.state)


class Verifier:
    def __init__(self, directory, bin_dir, roots, program="assay-verifier"):
        self.directory = directory
        self.bin = bin_dir
        self.program = program
        self.process = None
        self.port = 0
        run([self.tool("assay-verifier"), "init", directory, "--port", "8443", "--open-enrollment", "--audience", "demo-title",
             *[arg for root in roots for arg in ("--ek-roots", root)]])
        self.edit("verifier.toml", "listen_port = 8443", "listen_port = 0")
        self.edit("verifier.toml", "begin_per_source_minute = 10", "begin_per_source_minute = 1000\nbegin_per_ek_minute = 2000\nbegin_global_minute = 10000")
        self.edit("policy.toml", 'name = "first policy: asks nothing of the runtime"', 'name = "demo: asks nothing of the runtime"')

    def tool(self, name):
        return os.path.join(self.bin, name)

    def path(self, *names):
        return os.path.join(self.directory, *names)

    def edit(self, name, old, new):
        with open(self.path(name), encoding="utf-8") as handle:
            text = handle.read()
        if old not in text:
            raise Failure(f"{name} does not contain {old!r}")
        with open(self.path(name), "w", encoding="utf-8") as handle:
            handle.write(text.replace(old, new))

    def judge_pcr(self, pcr, value_hex):
        self.edit("policy.toml", "# [pcr]\n# 4 = [\"sha256:...\"]\n", f"[pcr]\n{pcr} = [\"sha256:{value_hex}\"]\n")

    def start(self, env=None):
        log = self.path("verifier.log")
        seen = os.path.getsize(log) if os.path.exists(log) else 0
        self.process = Process([self.tool(self.program), "serve", "--config", self.path("verifier.toml")], log, env=env)

        def listening():
            if not self.process.alive():
                raise Failure("assay-verifier ended: " + self.process.output()[-600:])
            for line in self.process.output()[seen:].splitlines():
                if "listening on" in line:
                    return int(line.rsplit(" ", 1)[1])
            return 0

        self.port = wait_for("the verifier", listening)

    def stop(self, sig=signal.SIGTERM):
        return self.process.stop(sig)

    @property
    def url(self):
        return f"https://localhost:{self.port}"

    @property
    def ca(self):
        return self.path("tls", "cert.pem")

    def ctl(self, *argv, check=True, program="assayctl"):
        return run([self.tool(program), "--socket", self.path("operator.sock"), *argv], check=check)

    @property
    def audit(self):
        return self.path("state", "audit")

    @property
    def audit_key(self):
        return self.path("keys", "audit.key")

    def curl(self, path):
        """GET over TLS with the verifier's own certificate as the only root."""
        return run([sys.executable, "-c", """
import ssl, sys, urllib.request
context = ssl.create_default_context(cafile=sys.argv[2])
sys.stdout.write(urllib.request.urlopen(sys.argv[1], context=context, timeout=10).read().decode())
""", self.url + path, self.ca]).stdout


class Machine:
    """An endpoint: a TPM, an agent and a relay."""

    def __init__(self, directory, bin_dir, tpm, verifier):
        self.directory = directory
        self.bin = bin_dir
        self.tpm = tpm
        self.verifier = verifier
        self.agent = None
        self.relay = None
        os.makedirs(self.path("state"), mode=0o700, exist_ok=True)
        with open(self.path("agent.toml"), "w", encoding="utf-8") as out:
            out.write(f'[tpm]\ntcti = "{tpm.tcti}"\n[agent]\nsocket = "{self.socket}"\nstate_dir = "{self.path("state")}"\n'
                      f'relay_user = "{os.getuid()}"\n'
                      '[budget]\nrelay = { per_minute = 60000, burst = 1000 }\nuser = { per_minute = 60000, burst = 1000 }\n'
                      'connection = { per_minute = 60000, burst = 1000 }\n')

    def path(self, name):
        return os.path.join(self.directory, name)

    @property
    def socket(self):
        return self.path("agent.sock")

    @property
    def record(self):
        return self.path("state/enrollment.toml")

    def program(self, name):
        return os.path.join(self.bin, name)

    def write_relay_config(self):
        with open(self.path("relay.toml"), "w", encoding="utf-8") as out:
            out.write(f'agent_socket = "{self.socket}"\nverifier = "{self.verifier.url}"\nca = "{self.verifier.ca}"\n')

    def enroll(self, *extra, check=True, command="enroll"):
        return run([self.program("assay-enroll"), "--verifier", self.verifier.url, "--ca", self.verifier.ca, "--tcti", self.tpm.tcti, "--state-dir",
                    self.path("state"), "--json", *extra, command], check=check)

    def start_agent(self):
        self.agent = Process([self.program("assay-agent"), "--config", self.path("agent.toml")], self.path("agent.log"))

        def ready():
            if not self.agent.alive():
                raise Failure("assay-agent ended: " + self.agent.output()[-600:])
            probe = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            try:
                probe.connect(self.socket)
                return True
            except OSError:
                return False
            finally:
                probe.close()

        wait_for("the agent", ready)

    def stop_agent(self, sig=signal.SIGTERM):
        if self.agent is not None:
            self.agent.stop(sig)
            self.agent = None

    def start_relay(self):
        self.write_relay_config()
        self.relay = Process([self.program("assay-relay"), "--config", self.path("relay.toml")], self.path("relay.log"))

    def stop_relay(self):
        if self.relay is not None:
            self.relay.stop()
            self.relay = None

    def stop(self):
        self.stop_relay()
        self.stop_agent()

    def attest(self):
        """One attestation; the relay's JSON, with its exit code as member "exit"."""
        self.write_relay_config()
        done = run([self.program("assay-relay"), "--config", self.path("relay.toml"), "--once", "--json"], check=False)
        try:
            answer = json.loads(done.stdout.splitlines()[-1])
        except (IndexError, ValueError) as error:
            raise Failure(f"assay-relay printed no JSON: {done.stdout} {done.stderr}") from error
        answer["exit"] = done.returncode
        return answer

    def probe(self, mode, *extra, tcti=None, record=None):
        done = run([self.program("assay-probe"), "--socket", self.socket, "--verifier", self.verifier.url, "--ca", self.verifier.ca, "--record",
                    record or self.record, "--tcti", tcti or self.tpm.tcti, *extra, mode], check=False)
        if done.returncode != 0:
            raise Failure("assay-probe: " + done.stderr.strip())
        return json.loads(done.stdout)

    def reboot(self):
        """The whole machine: the agent stops in order, the TPM goes through power off and on, the agent starts."""
        self.stop_agent()
        self.tpm.reboot()
        self.start_agent()


class World:
    def __init__(self, bin_dir, keep=None, verifier_program="assay-verifier"):
        self.bin = bin_dir
        self.keep = keep
        if keep:
            os.makedirs(keep, mode=0o700, exist_ok=True)
            if os.listdir(keep):
                raise Failure(f"{keep} is not empty")
        self.directory = keep or tempfile.mkdtemp(prefix="assay-")
        self.parts = []
        self.maker = Manufacturer(self.path("manufacturer"))
        self.verifier_program = verifier_program
        self.verifier = None

    def path(self, name):
        return os.path.join(self.directory, name)

    def make_tpm(self, name, maker=None):
        tpm = Tpm(self.path(name), maker or self.maker)
        tpm.power_on()
        self.parts.append(tpm)
        return tpm

    def make_verifier(self):
        self.verifier = Verifier(self.path("verifier"), self.bin, [self.maker.root, self.maker.intermediate], self.verifier_program)
        return self.verifier

    def make_machine(self, name, tpm):
        directory = self.path(name)
        os.makedirs(directory, mode=0o700, exist_ok=True)
        machine = Machine(directory, self.bin, tpm, self.verifier)
        self.parts.append(machine)
        return machine

    def close(self):
        for part in reversed(self.parts):
            if isinstance(part, Machine):
                part.stop()
        for part in self.parts:
            if isinstance(part, Tpm) and part.process is not None:
                part.process.stop()
        if self.verifier is not None and self.verifier.process is not None:
            self.verifier.stop()
        if not self.keep:
            shutil.rmtree(self.directory, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self.close()
