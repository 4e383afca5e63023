"""Sets of images: where they are looked for, what is refused, and batches of them."""

import hashlib
import http.server
import io
import tarfile
import threading

import numpy as np
import pytest

from dlsys import data, datasets
from dlsys.datasets import Batches, images
from dlsys.download import DataError

COUNT = 40


@pytest.fixture(autouse=True)
def little(monkeypatch, tmp_path):
    """No network, no cache of this machine, and files of few images."""
    monkeypatch.delenv("DLSYS_DATA", raising=False)
    monkeypatch.delenv("DLSYS_OFFLINE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(images, "MIRRORS", {"cifar10": (), "fashion-mnist": ()})
    monkeypatch.setattr(images, "CIFAR10_IMAGES", COUNT)
    monkeypatch.setattr(images, "VALIDATION_IMAGES", 30)
    official = tuple(records(5)[:10, 0])
    monkeypatch.setattr(images, "CIFAR10_FIRST_LABELS", official)


def records(seed):
    """The records of one file."""
    random = np.random.default_rng(seed)
    found = random.integers(0, 256, (COUNT, images.CIFAR10_RECORD)).astype(np.uint8)
    found[:, 0] = random.integers(0, 10, COUNT)
    return found


def cifar10(folder):
    """A folder with the six files."""
    folder.mkdir(parents=True)
    for seed, name in enumerate(images.CIFAR10_FILES):
        records(seed).tofile(folder / name)
    return folder


def test_cifar10_is_read_as_planes_of_colours_and_split(tmp_path):
    found = datasets.load("cifar10", cifar10(tmp_path / "given"))
    assert found.train_x.shape == (5 * COUNT - 30, 3, 32, 32)
    assert [len(x) for x in (found.valid_x, found.valid_y, found.test_x)] == [30, 30, COUNT]
    record = records(4)[-1]  # the last of the training files
    assert found.valid_y[-1] == record[0]
    np.testing.assert_array_equal(found.valid_x[-1, 1, 0], record[1025:1057])
    np.testing.assert_array_equal(found.test_y, records(5)[:, 0])
    assert found.classes[3] == "cat" and found.source == str(tmp_path / "given")


def test_a_copy_with_another_order_is_called_one(tmp_path):
    folder = cifar10(tmp_path / "given")
    records(5)[::-1].tofile(folder / "test_batch.bin")
    said = "given, a copy that is not the official one"
    assert datasets.load("cifar10", folder).source.endswith(said)


def test_it_is_found_in_dlsys_data_and_in_the_cache(tmp_path, monkeypatch):
    cifar10(tmp_path / "cache/dlsys/cifar10")
    assert datasets.load("cifar10").source.endswith("cache/dlsys/cifar10")
    for place in ("first/cifar10", "second", "third/cifar10/cifar-10-batches-bin"):
        cifar10(tmp_path / place)
        monkeypatch.setenv("DLSYS_DATA", str(tmp_path / place.partition("/")[0]))
        assert datasets.load("cifar10").source == str(tmp_path / place)


def test_what_is_missing_or_wrong_is_named(tmp_path):
    folder = cifar10(tmp_path / "given")
    with pytest.raises(DataError, match="offline mode"):
        datasets.load("cifar10", offline=True)
    with pytest.raises(ValueError, match="there is no set 'cifar'; hint: cifar10, fashion"):
        datasets.load("cifar")
    (folder / "data_batch_2.bin").write_bytes(b"7" * 100)
    with pytest.raises(DataError, match=r"_2\.bin: 100 bytes, not 122920; hint: delete it and"):
        datasets.load("cifar10", folder)
    wrong = records(1)
    wrong[5, 0] = 10
    wrong.tofile(folder / "data_batch_2.bin")
    with pytest.raises(DataError, match="label 10 is not among"):
        datasets.load("cifar10", folder)
    (folder / "test_batch.bin").unlink()
    with pytest.raises(
        DataError, match=r"given lacks test_batch\.bin; hint: a folder with the six"
    ):
        datasets.load("cifar10", folder)


def test_a_file_that_can_not_be_read_is_named(tmp_path, monkeypatch):
    folder = cifar10(tmp_path / "given")

    def refused(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(images.Path, "read_bytes", refused)
    with pytest.raises(DataError, match=r"data_batch_1\.bin: cannot be read: Permission denied"):
        datasets.load("cifar10", folder)


@pytest.fixture
def server():
    """Serves bytes by name, at an address."""
    files = {}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            content = files.get(self.path[1:])
            self.send_response(404 if content is None else 200)
            self.send_header("Content-Length", str(len(content or b"")))
            self.end_headers()
            self.wfile.write(content or b"")

        def log_message(self, *said):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        yield files, f"http://127.0.0.1:{running.server_port}/"
        running.shutdown()


def archive(folder):
    """The bytes of an archive of the folder's files, as the official one has them."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as file:
        for path in sorted(folder.iterdir()):
            file.add(path, "cifar-10-batches-bin/" + path.name)
        file.add(folder, "../outside")
    return packed.getvalue()


def test_a_download_is_checked_and_unpacked(tmp_path, monkeypatch, server):
    files, address = server
    folder = cifar10(tmp_path / "origin")
    (folder / "readme.html").write_text("not wanted")
    content = archive(folder)
    files["cifar-10-binary.tar.gz"] = content
    monkeypatch.setattr(images, "MIRRORS", {"cifar10": (address,)})
    right = images.CIFAR10_ARCHIVE._replace(md5=hashlib.md5(content).hexdigest())
    cache = tmp_path / "cache/dlsys/cifar10"
    with pytest.raises(DataError, match=r"wrong checksum.*hint: --path, or DLSYS_DATA, names"):
        datasets.load("cifar10")
    assert list(cache.glob("*.bin")) == []
    monkeypatch.setattr(images, "CIFAR10_ARCHIVE", right)
    assert len(datasets.load("cifar10").train_x) == 5 * COUNT - 30
    assert sorted(p.name for p in cache.iterdir()) == sorted(images.CIFAR10_FILES)
    assert not (tmp_path / "outside").exists()


def test_fashion_mnist_has_one_channel(tmp_path):
    random = np.random.default_rng(0)
    for file, shape in zip(
        images.FASHION_FILES, [(50, 28, 28), (50,), (20, 28, 28), (20,)], strict=True
    ):
        data.write_idx(tmp_path / file.name, random.integers(0, 10, shape).astype(np.uint8))
    found = datasets.load("fashion-mnist", tmp_path)
    assert [len(x) for x in (found.train_x, found.valid_x, found.test_x)] == [20, 30, 20]
    assert found.train_x.shape[1:] == (1, 28, 28) and found.train_y.dtype == np.int64
    data.write_idx(tmp_path / images.FASHION_FILES[1].name, np.zeros(49, np.uint8))
    with pytest.raises(DataError, match="labels"):
        datasets.load("fashion-mnist", tmp_path)


def test_the_synthetic_set_needs_nothing_and_is_the_same_each_time():
    first, again = images.synthetic(100), images.synthetic(100)
    for a, b in zip(first[:6], again[:6], strict=True):
        np.testing.assert_array_equal(a, b)
    assert [len(x) for x in (first.train_x, first.valid_x, first.test_x)] == [80, 10, 10]
    assert (images.synthetic(100, seed=1).train_x != first.train_x).any()


def pictures(count=20):
    """Images whose pixels say which image it is: its number, and where a pixel lies."""
    x = np.arange(count * 3 * 8 * 8) % 251
    return x.reshape(count, 3, 8, 8).astype(np.uint8), np.arange(count)


PLAIN = {"statistics": (np.zeros(3), np.ones(3))}


def copied(batches, epoch, first=0):
    return [(x.copy(), y.copy()) for x, y in batches.epoch(epoch, first)]


def test_each_epoch_has_another_order_that_the_seed_decides():
    x, y = pictures()
    batches = Batches(x, y, 6, seed=1, **PLAIN)
    first, second = (np.concatenate([y for _, y in copied(batches, e)]) for e in (0, 1))
    assert len(first) == 18 and len(set(first)) == 18 and (first != second).any()
    again = Batches(x, y, 6, seed=1, **PLAIN)
    np.testing.assert_array_equal(np.concatenate([y for _, y in copied(again, 0)]), first)
    other = Batches(x, y, 6, seed=2, **PLAIN)
    assert (np.concatenate([y for _, y in copied(other, 0)]) != first).any()
    (images_of, labels), *_ = copied(batches, 0)
    np.testing.assert_allclose(images_of, x[labels] / 255, rtol=1e-6)


def test_batches_do_not_depend_on_threads_nor_on_where_an_epoch_begins():
    x, y = pictures(60)
    said = {"seed": 3, "crop": 2, "flip": True}
    wanted = copied(Batches(x, y, 4, threads=0, **said), 2)
    for threads, ahead in ((1, 1), (3, 4)):
        found = copied(Batches(x, y, 4, threads=threads, ahead=ahead, **said), 2)
        rest = copied(Batches(x, y, 4, threads=threads, ahead=ahead, **said), 2, first=9)
        for got, expected in zip([*found, *rest], [*wanted, *wanted[9:]], strict=True):
            np.testing.assert_array_equal(got[0], expected[0])
            np.testing.assert_array_equal(got[1], expected[1])


@pytest.mark.parametrize(("threads", "ahead"), [(0, 4), (1, 1), (3, 4)])
def test_a_batch_stays_as_it_is_until_the_next_one_is_asked_for(threads, ahead):
    """A step reads it meanwhile. All batches that may be made ahead are made before one looks."""
    x, y = pictures(60)
    wanted = copied(Batches(x, y, 4, threads=0), 0)
    batches, made = Batches(x, y, 4, threads=threads, ahead=ahead), threading.Semaphore(0)
    real = batches._made

    def counted(*said):
        found = real(*said)
        made.release()
        return found

    batches._made = counted
    seen = 0
    for place, (images_of, labels) in enumerate(batches.epoch(0)):
        while seen < (min(15, place + ahead + 1) if threads else place + 1):
            assert made.acquire(timeout=10)
            seen += 1
        np.testing.assert_array_equal(images_of, wanted[place][0])
        np.testing.assert_array_equal(labels, wanted[place][1])


def test_images_have_mean_zero_and_deviation_one_in_each_channel():
    x = np.random.default_rng(1).integers(0, 200, (50, 3, 8, 8)).astype(np.uint8)
    ((found, _),) = copied(Batches(x, np.arange(50), 50), 0)
    np.testing.assert_allclose(found.mean((0, 2, 3)), 0, atol=1e-5)
    np.testing.assert_allclose(found.std((0, 2, 3)), 1, rtol=1e-5)


def test_a_crop_moves_images_and_a_flip_mirrors_every_second():
    x, y = pictures(200)
    ((found, labels),) = copied(Batches(x, y, 200, crop=1, flip=True, **PLAIN), 0)
    seen = set()
    for image, label in zip(np.rint(found * 255).astype(int), labels, strict=True):
        bordered = np.pad(x[label], ((0, 0), (1, 1), (1, 1)))
        ways = {
            (down, across, mirrored)
            for down in range(3)
            for across in range(3)
            for mirrored in (1, -1)
            if (bordered[:, down : down + 8, across : across + 8][..., ::mirrored] == image).all()
        }
        assert ways
        seen |= ways
    assert len(seen) == 18


def test_a_training_may_stop_in_the_middle_of_an_epoch():
    x, y = pictures(60)
    before = threading.active_count()
    epoch = Batches(x, y, 2, threads=2).epoch(0)
    next(epoch)
    epoch.close()
    assert threading.active_count() == before


def test_a_batch_of_more_images_than_there_are_is_refused():
    with pytest.raises(ValueError, match="batches of 21 of 20 images"):
        Batches(*pictures(), 21)
