import gzip
import os
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

from bolide_lab import body, machine, proc
from bolide_lab.clients.base import ClientError
from bolide_lab.measure import run_client
from bolide_lab.sites.static import StaticSite, page

SPIN = "import time\nend=time.process_time()+{0}\nwhile time.process_time()<end: pass"


def test_cpu_of_a_process_and_its_children_is_seen() -> None:
    code = f"import subprocess,sys;subprocess.run([sys.executable,'-c',{SPIN.format(0.1)!r}])"
    code += ";sys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    try:
        before = proc.cpu([child.pid])
        assert proc.wait_until(lambda: len(proc.tree([child.pid])) == 2, 10)
        inner = proc.cpu([child.pid])
        assert inner.exact_s >= before.exact_s
        assert proc.rss_mib([child.pid]) > 1
        assert proc.rss_mib([child.pid], "VmHWM") >= 1
    finally:
        proc.end([child.pid])
    assert not Path(f"/proc/{child.pid}/task").exists()
    child.stdin and child.stdin.close()


def test_children_that_have_ended_are_counted() -> None:
    code = f"import subprocess,sys;subprocess.run([sys.executable,'-c',{SPIN.format(0.2)!r}])"
    code += ";print(1,flush=True);sys.stdin.read()"
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", code], **pipes) as child:  # type: ignore[call-overload]
        try:
            assert child.stdout.readline() == b"1\n"
            assert proc.cpu([child.pid]).exact_s >= 0.2
        finally:
            proc.end([child.pid])


def test_user_and_system_add_up_to_the_exact_time() -> None:
    spent = proc.Cpu(1.5, 0.5, 2.02).since(proc.Cpu(0.5, 0.0, 0.5))
    assert sum(spent.split()) == pytest.approx(1.52)
    assert spent.split()[0] == pytest.approx(1.52 * 2 / 3)
    # A thread that ended has taken its schedstat with it.
    assert proc.Cpu(3.0, 1.0, 0.1).since(proc.Cpu()).exact_s == 4.0
    assert proc.Cpu(0.0, 0.0, 0.1).since(proc.Cpu(1.0, 1.0, 1.0)) == proc.Cpu(0, 0, 0)


def test_a_series_has_a_row_for_each_interval() -> None:
    series = proc.Series([os.getpid()], 0.01)
    assert proc.wait_until(lambda: len(series.rows) >= 3, 10)
    rows = series.stop()
    assert [row[0] for row in rows] == sorted(row[0] for row in rows)
    assert all(row[2] > 1 for row in rows)


def test_a_client_that_hangs_is_ended(tmp_path: Path) -> None:
    with pytest.raises(ClientError, match="did not end"):
        run_client([sys.executable, "-c", "import time; time.sleep(60)"], 0.2, tmp_path)


def test_a_clients_cpu_and_words_are_kept(tmp_path: Path) -> None:
    code = SPIN.format(0.2) + "\nimport bolide_lab,sys;print('hello');print('x',file=sys.stderr)"
    ran = run_client([sys.executable, "-c", code], 60, tmp_path)
    assert ran.text.splitlines() == ["x", "hello"] or ran.text.splitlines() == ["hello", "x"]
    assert ran.cpu_s >= 0.2
    assert ran.seconds > 0


def answer(**words: object) -> body.Answer:
    plain = {"status": 200, "version": "2", "coding": "", "bytes_on_wire": 1, "bytes_plain": 1}
    return body.Answer(
        **{**plain, "sha256": "x", "expected_version": "2", **words}  # type: ignore[arg-type]
    )


def test_bodies_are_compared_decoded(tmp_path: Path) -> None:
    file, packed, deflated = tmp_path / "f", tmp_path / "f.gz", tmp_path / "f.z"
    file.write_bytes(b"hello" * 100)
    packed.write_bytes(gzip.compress(file.read_bytes()))
    deflated.write_bytes(zlib.compress(file.read_bytes()))
    _, size, digest = body.hashed(file, "")
    assert body.hashed(packed, "gzip")[1:] == (size, digest)
    assert body.hashed(deflated, "deflate")[1:] == (size, digest)
    assert body.hashed(file, "gzip")[2] == ""
    assert body.hashed(file, "br")[2] == ""
    assert body.problem(answer(sha256=digest), file) is None
    assert "the body differs" in (body.problem(answer(), file) or "")


def test_wrong_answers_are_named() -> None:
    assert body.problem(answer(), None) is None
    assert body.problem(answer(status=404), None) == "status 404"
    assert body.problem(answer(version="1.1"), None) == "answered by HTTP/1.1, not HTTP/2"
    assert body.problem(answer(error="refused"), None) == "refused"
    assert body.problem(answer(bytes_plain=0), None) == "the body is empty"


def test_the_static_site_is_the_same_each_time(tmp_path: Path) -> None:
    from bolide_lab.catalogue import load_catalogue, quick_form

    one, other = StaticSite(), StaticSite()
    root = one.start(tmp_path / "a", 0).root
    other.start(tmp_path / "b", 0)
    names = sorted(p.name for p in root.iterdir())
    for name in names:
        assert (root / name).read_bytes() == (tmp_path / "b/site" / name).read_bytes()
    assert (root / "index.html").stat().st_size == 163
    assert (root / "1kstatic.html").stat().st_size == 1023
    assert len(set((root / "1knogzip.jpg").read_bytes())) > 200
    scenario = quick_form(load_catalogue()["Q5a"])
    assert scenario is not None
    one.reset(scenario)
    assert (root / "1m").stat().st_size == 1 << 20


def test_pages_have_exactly_their_size_and_end_well() -> None:
    for size in (163, 1023, 102_300):
        assert len(page(size, "t")) == size
        assert page(size, "t").endswith(b"</body></html>\n")


def test_a_free_port_is_free() -> None:
    port = machine.free_port(28080)
    assert 28080 <= port < 29080
    assert machine.free_port(port, frozenset({port})) > port


def test_the_machine_is_recorded_without_its_name() -> None:
    import json
    import platform

    text = json.dumps(machine.record())
    assert "kernel" in text
    node = platform.node()
    assert not node or f'"{node}"' not in text


def test_what_may_be_chance_is_tried_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bolide_lab import measure, run
    from bolide_lab.catalogue import load_catalogue
    from bolide_lab.plan import Trial
    from bolide_lab.records import Records, read_lines

    errors: list[Exception] = [measure.Failed("once")]

    def taken(self: run.Runner, trial: Trial) -> list[object]:
        if errors:
            raise errors.pop(0)
        return []

    monkeypatch.setattr(run.Runner, "_measure", taken)
    with Records.create(tmp_path, "2026-01-01", "t") as lines, run.Runner(lines, 1) as runner:
        scenario = load_catalogue()["B-h2-html"]
        assert runner.take(Trial(scenario, "nginx", "best", 1)) == []
        errors = [measure.Unfit("never")]
        assert runner.take(Trial(scenario, "caddy", "best", 1)) == "never"
        assert runner.take(Trial(scenario, "caddy", "best", 2)) is None
        errors = [measure.Failed("twice"), measure.Failed("twice")]
        assert runner.take(Trial(scenario, "h2o", "best", 1)) == "twice"
    found = [(line["kind"], line.get("server")) for line in read_lines(lines.directory)]
    assert found == [("note", None), ("excluded", "caddy"), ("note", None), ("excluded", "h2o")]
