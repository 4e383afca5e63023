"""The data loader: IDX files, where MNIST is looked for, the download, and the stand-in."""

import gzip
import hashlib
import http.server
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from dlsys import data, download

ROOT = Path(__file__).resolve().parents[2]
REAL = Path(os.environ.get("DLSYS_DATA") or ROOT.parent / "shared" / "data" / "mnist")
real = pytest.mark.skipif(
    not REAL.is_dir(), reason=f"MNIST is not at {REAL}; set DLSYS_DATA to run this test"
)
TRAIN, TEST, VALID = 600, 130, 100


def little_mnist():
    """Arrays in the order of data.FILES; random pixels, so that gzip can't shrink them away."""
    rng = np.random.RandomState(7)
    sizes = (TRAIN, 28, 28), (TRAIN,), (TEST, 28, 28), (TEST,)
    return [rng.randint(0, 256 if len(s) == 3 else 10, s).astype(np.uint8) for s in sizes]


def fill(folder, suffix=".gz"):
    folder.mkdir(parents=True, exist_ok=True)
    for file, array in zip(data.FILES, little_mnist(), strict=True):
        data.write_idx(folder / (file.name + suffix), array)
    return folder


@pytest.fixture(autouse=True)
def little(monkeypatch, tmp_path, request):
    """No network, no cache of this machine, and a file table of small files (not for `real`)."""
    monkeypatch.delenv("DLSYS_DATA", raising=False)
    monkeypatch.delenv("DLSYS_OFFLINE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(data, "MIRRORS", ())
    if request.node.get_closest_marker("skipif"):
        return
    fill(tmp_path / "table", "")
    table = []
    for file, array in zip(data.FILES, little_mnist(), strict=True):
        md5 = hashlib.md5((tmp_path / "table" / file.name).read_bytes()).hexdigest()
        table.append(data.IdxFile(file.name, md5, array.shape))
    monkeypatch.setattr(data, "FILES", tuple(table))
    monkeypatch.setattr(data, "VALIDATION_IMAGES", VALID)


@pytest.fixture
def cache(tmp_path):
    return tmp_path / "cache" / "dlsys" / "mnist"


# --- IDX ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["u1", "i1", "i2", "i4", "f4", "f8"])
@pytest.mark.parametrize("name", ["a.idx", "a.idx.gz"])
def test_an_idx_file_comes_back_as_it_was_written(tmp_path, dtype, name):
    array = (np.arange(3 * 31) - 40).reshape(3, 31).astype(dtype)
    data.write_idx(tmp_path / name, array)
    back = data.read_idx(tmp_path / name)
    assert back.dtype == array.dtype and back.dtype.isnative
    np.testing.assert_array_equal(back, array)


def test_write_idx_gives_the_same_bytes_each_time(tmp_path):
    for name in ("a.gz", "b.gz"):
        data.write_idx(tmp_path / name, np.arange(9, dtype=np.uint8))
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_write_idx_refuses_a_type_that_idx_lacks(tmp_path):
    with pytest.raises(data.DataError, match="IDX has no type for int64"):
        data.write_idx(tmp_path / "a", np.arange(3))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file: starts with nothing"),
        (b"<htm", "not an IDX file: starts with 3c68746d"),
        (b"\0\0\x07\1\0\0\0\1a", "unknown IDX type 0x07"),
        (b"\0\0\x08\3\0\0", "truncated in the header: 6 of 16 bytes"),
        (b"\0\0\x08\1\0\0\0\5abc", r"truncated: 3 of 5 bytes for shape \(5,\)"),
        (b"\0\0\x08\1\0\0\0\2abc", r"1 bytes too many for shape \(2,\)"),
        (b"\0\0\x08\3" + b"\xff" * 12, "truncated: 0 of 79228162458924105385300197375 bytes"),
        (gzip.compress(b"\0" * 99, mtime=0)[:-9], "cannot be read"),
        (gzip.compress(bytes(range(99)), mtime=0)[:12] + b"junk" * 9, "cannot be read"),
    ],
)
def test_a_broken_idx_file_is_named_with_what_is_wrong(tmp_path, content, message):
    (tmp_path / "broken").write_bytes(content)
    with pytest.raises(data.DataError, match=f"broken: .*{message}"):
        data.read_idx(tmp_path / "broken")


def test_a_missing_idx_file_is_named(tmp_path):
    with pytest.raises(data.DataError, match="nothing: cannot be read: No such file"):
        data.read_idx(tmp_path / "nothing")


# --- folders -----------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_an_explicit_folder_is_split_scaled_and_flattened(tmp_path, suffix):
    found = data.load_mnist(fill(tmp_path / "here", suffix))
    images, labels, test_images, test_labels = little_mnist()
    cut = TRAIN - VALID
    assert found.train_x.dtype == np.float32 and found.train_y.dtype == np.int64
    np.testing.assert_array_equal(found.train_y, labels[:cut])
    np.testing.assert_array_equal(found.valid_y, labels[cut:])
    np.testing.assert_array_equal(found.test_y, test_labels)
    np.testing.assert_allclose(found.valid_x, images[cut:].reshape(VALID, 784) / 255, rtol=1e-6)
    np.testing.assert_allclose(found.test_x, test_images.reshape(TEST, 784) / 255, rtol=1e-6)
    assert found.source == str(tmp_path / "here")


def test_an_explicit_folder_that_lacks_a_file_is_an_error_and_not_a_fall_through(tmp_path):
    (fill(tmp_path / "here") / "t10k-labels-idx1-ubyte.gz").unlink()
    with pytest.raises(data.DataError, match=r"here lacks t10k-labels-idx1-ubyte; hint: "):
        data.load_mnist(tmp_path / "here")
    with pytest.raises(data.DataError, match="gone is not a folder"):
        data.load_mnist(tmp_path / "gone")


def test_a_corrupt_file_in_an_explicit_folder_is_named(tmp_path):
    bad = fill(tmp_path / "here") / "train-images-idx3-ubyte.gz"
    bad.write_bytes(bad.read_bytes()[:5000])
    with pytest.raises(data.DataError, match=r"train-images-idx3-ubyte\.gz: cannot be read"):
        data.load_mnist(tmp_path / "here")


def test_a_file_of_another_shape_is_refused(tmp_path):
    data.write_idx(fill(tmp_path) / "t10k-labels-idx1-ubyte", np.zeros(3, np.uint8))
    with pytest.raises(data.DataError, match=r"holds uint8 \(3,\); MNIST's t10k-labels"):
        data.load_mnist(tmp_path)


@pytest.mark.parametrize("below", ["", "mnist"])
def test_dlsys_data_names_the_folder_or_the_one_above_it(tmp_path, monkeypatch, below):
    fill(tmp_path / "env" / below)
    monkeypatch.setenv("DLSYS_DATA", str(tmp_path / "env"))
    assert data.load_mnist().source == str(tmp_path / "env" / below)


def test_dlsys_data_without_the_files_is_an_error(tmp_path, monkeypatch, cache):
    fill(cache)
    monkeypatch.setenv("DLSYS_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(data.DataError, match=r"DLSYS_DATA=.*nowhere is not a folder"):
        data.load_mnist()


def test_the_cache_is_used_when_nothing_is_named(cache):
    fill(cache)
    assert data.load_mnist(offline=True).source == str(cache)


# --- the stand-in ------------------------------------------------------------------------------


def test_without_mnist_the_digits_stand_in_and_a_line_says_so(capsys):
    found = data.load_mnist(offline=True)
    said = capsys.readouterr().err
    assert said.startswith("MNIST was not found (") and said.count("\n") == 1
    assert "1,797 handwritten digits instead; hint: set DLSYS_DATA" in said
    shapes = [part.shape for part in found[:6]]
    assert shapes == [(1200, 784), (1200,), (300, 784), (300,), (297, 784), (297,)]
    assert found.train_x.dtype == np.float32 and found.train_y.dtype == np.int64
    assert found.train_x.min() == 0 and 0.9 < found.train_x.max() <= 1


def test_the_digits_come_in_one_fixed_order():
    first, second = data._load_digits(), data._load_digits()
    np.testing.assert_array_equal(first.train_x, second.train_x)
    assert sorted(set(first.valid_y)) == list(range(10))


def test_bilinear_scaling_keeps_constants_and_ramps():
    np.testing.assert_allclose(data._bilinear(np.full((1, 8, 8), 3.0), 28), 3.0)
    ramp = data._bilinear(np.tile(np.arange(8.0), (1, 8, 1)), 28)[0, 5]
    np.testing.assert_allclose(np.diff(ramp[2:-2]), 8 / 28)


def test_without_scikit_learn_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.datasets", None)
    with pytest.raises(data.DataError, match=r"hint: set DLSYS_DATA .*pip install scikit-learn"):
        data.load_mnist(offline=True)


def test_dlsys_offline_skips_the_download(monkeypatch, capsys):
    monkeypatch.setattr(data, "_download", lambda folder: pytest.fail("downloaded"))
    monkeypatch.setenv("DLSYS_OFFLINE", "1")
    data.load_mnist()
    assert "offline mode skips the download" in capsys.readouterr().err


# --- the download ------------------------------------------------------------------------------


class Mirror(http.server.ThreadingHTTPServer):
    """Serves a folder with ranges; `cut` bytes an answer, seconds of silence before or after."""

    daemon_threads = True

    def __init__(self, folder, cut=None, stall=0, linger=0, ranges=True):
        super().__init__(("127.0.0.1", 0), MirrorHandler)
        self.folder, self.cut, self.stall, self.ranges = folder, cut, stall, ranges
        self.linger, self.asked = linger, []
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/"


class MirrorHandler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        server, wanted = self.server, self.headers.get("Range")
        server.asked.append((self.path, wanted))
        body = (server.folder / self.path.strip("/")).read_bytes()
        start = int(wanted[6:-1]) if wanted and server.ranges else 0
        if start and start >= len(body):
            self.send_error(416)
            return
        self.send_response(206 if start else 200)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        time.sleep(server.stall)
        self.wfile.write(body[start:][: server.cut])
        self.wfile.flush()
        time.sleep(server.linger)

    def log_message(self, *args):
        pass


@pytest.fixture
def mirror(tmp_path, monkeypatch):
    """A function that starts mirrors of a good folder, in the order they will be tried."""
    started = []

    def start(folder=None, **how):
        started.append(Mirror(folder or fill(tmp_path / "served"), **how))
        monkeypatch.setattr(data, "MIRRORS", tuple(server.url for server in started))
        return started[-1]

    yield start
    for server in started:
        server.shutdown()
        server.server_close()


def names(folder):
    return sorted(path.name for path in folder.iterdir())


WHOLE = sorted(file.name + ".gz" for file in data.FILES)


def test_a_download_fills_the_cache_and_the_next_call_needs_no_network(mirror, cache, capsys):
    server = mirror()
    assert data.load_mnist().source == str(cache)
    assert names(cache) == WHOLE and capsys.readouterr().err == ""
    data.load_mnist()
    assert len(server.asked) == 4


def test_only_the_lacking_files_are_fetched(mirror, cache):
    server = mirror()
    (fill(cache) / WHOLE[0]).unlink()
    data.load_mnist()
    assert server.asked == [("/" + WHOLE[0], None)]


def test_a_dropped_connection_is_resumed_where_it_broke(mirror, cache):
    server = mirror(cut=200_000)
    data.load_mnist()
    assert names(cache) == WHOLE
    assert ("/train-images-idx3-ubyte.gz", "bytes=200000-") in server.asked


def test_a_stalled_download_is_resumed_after_the_stall_limit(mirror, cache, monkeypatch):
    monkeypatch.setattr(download, "STALL_S", 0.3)
    server = mirror(cut=300_000, linger=5)
    data.load_mnist()
    assert ("/train-images-idx3-ubyte.gz", "bytes=300000-") in server.asked
    assert names(cache) == WHOLE


def test_a_server_without_ranges_starts_over(mirror, cache, monkeypatch):
    mirror(cut=200_000)
    mirror(ranges=False)
    monkeypatch.setattr(download, "RESUMES", 1)
    data.load_mnist()
    assert names(cache) == WHOLE


def test_a_broken_download_leaves_a_part_that_the_next_call_resumes(
    mirror, cache, monkeypatch, capsys
):
    broken = mirror(cut=1000)
    data.load_mnist()
    assert "the connection closed early" in capsys.readouterr().err
    assert names(cache) == ["train-images-idx3-ubyte.gz.part"]
    broken.cut = None
    assert data.load_mnist().source == str(cache)
    assert ("/train-images-idx3-ubyte.gz", f"bytes={1000 * download.RESUMES}-") in broken.asked
    assert names(cache) == WHOLE


def test_a_wrong_checksum_drops_the_part_and_tries_the_next_mirror(mirror, tmp_path, cache):
    bad = fill(tmp_path / "bad")
    data.write_idx(bad / WHOLE[2], np.zeros((TRAIN, 28, 28), np.uint8))
    mirror(bad)
    good = mirror()
    data.load_mnist()
    assert good.asked[0] == ("/train-images-idx3-ubyte.gz", None)  # from its start
    assert names(cache) == WHOLE


def test_a_page_instead_of_the_file_never_reaches_the_cache(mirror, tmp_path, cache, capsys):
    bad = fill(tmp_path / "bad")
    (bad / "train-images-idx3-ubyte.gz").write_bytes(b"<html>please log in</html>")
    mirror(bad)
    data.load_mnist()
    assert "wrong checksum: got " in capsys.readouterr().err
    assert names(cache) == []


def test_a_leftover_part_that_is_already_whole_is_verified_and_kept(mirror, tmp_path, cache):
    server = mirror()
    cache.mkdir(parents=True)
    whole = (server.folder / "train-images-idx3-ubyte.gz").read_bytes()
    (cache / "train-images-idx3-ubyte.gz.part").write_bytes(whole)
    data.load_mnist()
    assert names(cache) == WHOLE


def test_a_mirror_that_never_answers_costs_its_share_of_the_budget(mirror, cache, monkeypatch):
    monkeypatch.setattr(download, "FIRST_BYTE_S", 0.4)
    dead = mirror(stall=30)
    mirror()
    start = time.monotonic()
    assert data.load_mnist().source == str(cache)
    assert time.monotonic() - start < 3
    assert len(dead.asked) == 1  # it is not asked again for each file


def test_without_an_answer_the_digits_come_within_three_seconds(monkeypatch, mirror, capsys):
    mirror(stall=30)
    mirror(stall=30)
    data._load_digits()  # the import of scikit-learn is not what is timed
    start = time.monotonic()
    data.load_mnist()
    assert time.monotonic() - start < 3
    assert "no answer within" in capsys.readouterr().err


def test_a_hanging_name_lookup_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(download, "FIRST_BYTE_S", 0.3)
    monkeypatch.setattr(data, "MIRRORS", ("http://127.0.0.1:9/",))
    monkeypatch.setattr(download.urllib.request, "urlopen", lambda *a, **k: time.sleep(30))
    start = time.monotonic()
    data.load_mnist()
    assert time.monotonic() - start < 2.5


def test_a_cache_that_cannot_be_made_falls_back(tmp_path, monkeypatch, capsys, mirror):
    mirror()
    (tmp_path / "file").write_text("in the way")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert len(data.load_mnist().train_x) == 1200
    assert "in the way" not in capsys.readouterr().err


def test_downloads_at_once_share_the_cache(mirror, cache):
    mirror(cut=150_000)
    found = []
    threads = [threading.Thread(target=lambda: found.append(data.load_mnist())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [one.source for one in found] == [str(cache)] * 4
    assert names(cache) == WHOLE


def test_a_part_of_a_killed_process_is_cleared_away_in_the_end(mirror, cache):
    mirror()
    cache.mkdir(parents=True)
    orphan = cache / "train-images-idx3-ubyte.gz.0badf00d.part"
    orphan.write_bytes(b"old")
    os.utime(orphan, (0, 0))
    data.load_mnist()
    assert names(cache) == WHOLE


@pytest.mark.parametrize("rich", [True, False])
def test_a_bar_is_drawn_on_a_terminal(mirror, monkeypatch, capsys, rich):
    mirror()
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    data.load_mnist()
    assert "train-images-idx3-ubyte" in capsys.readouterr().err


# --- the rest ----------------------------------------------------------------------------------


def test_one_hot_sets_one_in_each_row():
    np.testing.assert_array_equal(data.one_hot([2, 0], 3), np.float32([[0, 0, 1], [1, 0, 0]]))
    assert data.one_hot(np.zeros(0, np.int64)).shape == (0, 10)


def test_one_hot_names_the_label_that_does_not_fit():
    with pytest.raises(ValueError, match=r"label 10 at index 1 is not in 0\.\.9"):
        data.one_hot([3, 10])


def test_the_command_prints_source_counts_and_classes(tmp_path, capsys):
    assert data.main(["--path", str(fill(tmp_path / "here"))]) == 0
    said = capsys.readouterr().out
    assert f"found in {tmp_path / 'here'}" in said and "train    500 images" in said


def test_the_command_fails_in_words(tmp_path, capsys):
    assert data.main(["--path", str(tmp_path / "gone")]) == 2
    assert "is not a folder; hint: " in capsys.readouterr().err


@real
def test_real_mnist_has_the_known_counts_and_range():
    found = data.load_mnist(REAL if not (REAL / "mnist").is_dir() else REAL / "mnist")
    shapes = [part.shape for part in found[:6]]
    assert shapes == [(50000, 784), (50000,), (10000, 784), (10000,), (10000, 784), (10000,)]
    assert found.train_x.min() == 0 and found.train_x.max() == 1
    assert found.train_y[:5].tolist() == [5, 0, 4, 1, 9]
    assert found.test_y[:5].tolist() == [7, 2, 1, 0, 4]


@real
def test_the_checksums_are_those_of_the_real_files():
    folder = REAL if not (REAL / "mnist").is_dir() else REAL / "mnist"
    for file in data.FILES:
        content = download.read_bytes(data._find(folder, file.name))
        assert hashlib.md5(content).hexdigest() == file.md5


def test_importing_the_module_leaves_scikit_learn_and_rich_alone():
    code = "import sys, dlsys.data; sys.exit(any(m in sys.modules for m in ('sklearn', 'rich')))"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "solution" / "python")}
    assert subprocess.run([sys.executable, "-c", code], env=env).returncode == 0
