"""MATLAB files, brain images, rsatoolbox and MNE's epochs: what goes in comes out, row by row."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from scipy.io import savemat
from scipy.spatial.distance import pdist, squareform

import thinkalike as ta
from thinkalike.activations.brain_files import from_epochs, from_nifti, from_rsatoolbox, mat_arrays
from thinkalike.errors import InvalidInput, StoreError

RNG = np.random.default_rng(0)


class TestMatlab:
    def test_variables_are_layers(self, tmp_path: Path) -> None:
        V1, IT = RNG.normal(size=(6, 4)), RNG.normal(size=(6, 3))
        savemat(tmp_path / "monkey.mat", {"V1": V1, "IT": IT, "note": "made up"})
        found = ta.Activations.open(tmp_path / "monkey.mat")
        assert found.system == "monkey"
        assert found.layers == ("V1", "IT")
        np.testing.assert_allclose(found["IT"], IT, rtol=1e-6)
        assert ta.similarity([str(tmp_path / "monkey.mat")], measure="cka").values.shape == (2, 2)

    def test_files_of_version_seven_three(self, tmp_path: Path) -> None:
        h5py = pytest.importorskip("h5py")
        V1 = RNG.normal(size=(6, 4))
        with h5py.File(tmp_path / "new.mat", "w", userblock_size=512) as file:
            file["V1"] = V1.T
        header = b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM"
        with (tmp_path / "new.mat").open("r+b") as file:
            file.write(header)
        np.testing.assert_array_equal(mat_arrays(tmp_path / "new.mat")["V1"], V1)

    def test_damaged_files(self, tmp_path: Path) -> None:
        path = tmp_path / "monkey.mat"
        savemat(path, {"V1": np.ones((5, 3))}, do_compression=True)
        whole = path.read_bytes()
        newer = whole[:124] + b"\x00\x02IM" + bytes(384) + b"\x89HDF\r\n\x1a\n" + bytes(100)
        flipped = whole[:-1] + bytes([whole[-1] ^ 1])
        for content in (b"", bytes(1000), whole[:-9], flipped, b"\x89HDF" + bytes(100), newer):
            path.write_bytes(content)
            with pytest.raises(StoreError, match=r"monkey\.mat cannot be read as a MATLAB file"):
                ta.Activations.open(path)

    def test_nothing_in_it(self, tmp_path: Path) -> None:
        savemat(tmp_path / "empty.mat", {"note": "nothing"})
        with pytest.raises(InvalidInput, match=r"has no matrix of numbers \(its variables: note \(1,\)\)"):
            ta.Activations.open(tmp_path / "empty.mat")
        (tmp_path / "text.mat").write_text("no MATLAB file, however long it may be" * 9)
        with pytest.raises(StoreError, match=r"text\.mat cannot be read as a MATLAB file"):
            ta.Activations.open(tmp_path / "text.mat")


class TestFilesOfDistances:
    X = RNG.normal(size=(6, 3))

    def test_a_file_of_rdms_is_known_by_its_form(self, tmp_path: Path) -> None:
        rdm = squareform(pdist(self.X))
        np.save(tmp_path / "one.npy", rdm)
        np.savez(tmp_path / "two.npz", V1=rdm, IT=rdm**2)
        savemat(tmp_path / "three.mat", {"V1": rdm})
        for name, layer in (("one.npy", "one"), ("two.npz", "V1"), ("three.mat", "V1")):
            found = ta.Activations.open(tmp_path / name)
            np.testing.assert_allclose(pdist(found[layer]), pdist(self.X), atol=1e-6)
            assert found.metadata["squared"] is False
        stimuli = ta.Stimuli.from_table(pd.DataFrame({"x": list("aabbcc")}))
        found = ta.Activations.open(tmp_path / "one.npy", stimuli=stimuli)
        assert found.stimuli_digest == stimuli.digest

    def test_negative_ones_are_squared(self, tmp_path: Path) -> None:
        plain = pdist(self.X, "sqeuclidean")
        squares = squareform(plain - plain.min() - 0.2)
        np.save(tmp_path / "crossnobis.npy", squares)
        found = ta.Activations.open(tmp_path / "crossnobis.npy")
        assert found.metadata["squared"] is True
        apart = pdist(found["crossnobis"], "sqeuclidean") - squareform(squares)
        np.testing.assert_allclose(apart, apart.mean(), atol=1e-6)

    def test_vectors_beside_distances_are_refused(self, tmp_path: Path) -> None:
        np.savez(tmp_path / "mixed.npz", V1=self.X, IT=squareform(pdist(self.X)))
        with pytest.raises(InvalidInput, match="Layer 'IT' is a matrix of distances"):
            ta.Activations.open(tmp_path / "mixed.npz")


class TestImages:
    VOLUMES = RNG.normal(size=(3, 4, 2, 5))
    MASK = RNG.integers(0, 3, size=(3, 4, 2))

    def test_voxels_inside_by_region(self) -> None:
        found = from_nifti(self.VOLUMES, self.MASK, labels={1: "V1", 2: "V2"})
        assert found.layers == ("V1", "V2")
        expected = [self.VOLUMES[x, y, z] for x, y, z in np.argwhere(self.MASK == 1)]
        np.testing.assert_allclose(found["V1"], np.array(expected).T, rtol=1e-6)

    def test_from_paths(self, tmp_path: Path) -> None:
        nibabel = pytest.importorskip("nibabel")
        for name, values in (("beta", self.VOLUMES), ("mask", (self.MASK > 0).astype(np.int16))):
            nibabel.save(nibabel.Nifti1Image(values, np.eye(4)), tmp_path / f"{name}.nii.gz")
        found = from_nifti(tmp_path / "beta.nii.gz", tmp_path / "mask.nii.gz")
        assert (found.system, found.layers, found.n_units) == (
            "beta",
            ("mask",),
            (int((self.MASK > 0).sum()),),
        )
        (tmp_path / "bad.nii").write_text("no image")
        with pytest.raises(StoreError, match=r"the image at .* cannot be read"):
            from_nifti(tmp_path / "bad.nii", self.MASK)
        image = tmp_path / "beta.nii.gz"
        image.write_bytes(image.read_bytes()[:-20])
        with pytest.raises(StoreError, match=r"the image at .* cannot be read"):
            from_nifti(image, self.MASK)

    @pytest.mark.parametrize(
        ("image", "mask", "message"),
        [
            (VOLUMES, MASK[:2], r"The mask has shape \(2, 4, 2\) and the image \(3, 4, 2\): resample"),
            (VOLUMES[..., 0], MASK, r"The image has shape \(3, 4, 2\): expected \(x, y, z, n_items\)"),
            (VOLUMES, MASK * 0, "The mask is 0 everywhere"),
            (VOLUMES, MASK * 0.3, "The mask has values that are not whole"),
        ],
    )
    def test_masks_that_do_not_fit(self, image: np.ndarray, mask: np.ndarray, message: str) -> None:
        with pytest.raises(InvalidInput, match=message):
            from_nifti(image, mask)


class TestRsatoolbox:
    def test_measurements_of_an_item_are_averaged(self) -> None:
        rsatoolbox = pytest.importorskip("rsatoolbox")
        values = RNG.normal(size=(6, 3))
        data = rsatoolbox.data.Dataset(values, obs_descriptors={"face": np.array(["a", "b", "c"] * 2)})
        found = from_rsatoolbox(data, item="face")
        assert found.item_names == ("a", "b", "c")
        np.testing.assert_allclose(found["measurements"], (values[:3] + values[3:]) / 2, rtol=1e-6)
        assert from_rsatoolbox(data).n_items == 6
        with pytest.raises(InvalidInput, match="There is no descriptor 'house'; there are face"):
            from_rsatoolbox(data, item="house")

    def test_its_rdms_keep_their_distances(self) -> None:
        rsatoolbox = pytest.importorskip("rsatoolbox")
        X = RNG.normal(size=(6, 3))
        squared = rsatoolbox.rdm.calc_rdm(rsatoolbox.data.Dataset(X), method="euclidean")
        found = from_rsatoolbox(squared)
        np.testing.assert_allclose(pdist(found[0], "sqeuclidean"), pdist(X, "sqeuclidean") / 3, atol=1e-9)
        plain = rsatoolbox.rdm.RDMs(pdist(X)[None], dissimilarity_measure="correlation")
        np.testing.assert_allclose(pdist(from_rsatoolbox(plain)[0]), pdist(X), atol=1e-9)

    def test_what_is_neither(self) -> None:
        with pytest.raises(InvalidInput, match="Got list: give a Dataset or RDMs of rsatoolbox"):
            from_rsatoolbox([])


class TestEpochs:
    DATA = 1e-6 * RNG.normal(size=(8, 5, 3))
    EPOCHS = SimpleNamespace(
        get_data=lambda: TestEpochs.DATA,
        times=np.array([0.0, 0.1, 0.2]),
        events=np.column_stack([np.arange(8), np.zeros(8, int), np.array([1, 2] * 4)]),
        event_id={"face": 1, "house": 2, "never": 3},
    )

    def test_a_layer_for_each_time_and_an_item_for_each_event(self) -> None:
        found = from_epochs(self.EPOCHS)
        assert found.layers == ("0 s", "0.1 s", "0.2 s")
        assert found.item_names == ("face", "house")
        means = np.stack([self.DATA[::2].mean(0), self.DATA[1::2].mean(0)])
        np.testing.assert_allclose(found["0.1 s"], means[:, :, 1] / np.sqrt((means**2).mean()), rtol=1e-5)

    def test_every_epoch_as_an_item(self) -> None:
        found = from_epochs(self.EPOCHS, average=False)
        assert found.item_names[:3] == ("face 0", "house 1", "face 2")
        assert found["0 s"].shape == (8, 5)

    def test_real_ones(self) -> None:
        """Triggers, eyes and bad channels are no data; magnetometers and electrodes count alike."""
        mne = pytest.importorskip("mne")
        kinds = ["mag", "mag", "eeg", "eeg", "eeg", "eog", "stim"]
        info = mne.create_info([f"{kind}{k}" for k, kind in enumerate(kinds)], 100.0, kinds, verbose="error")
        info["bads"] = ["eeg4"]
        codes = np.array([1, 2, 3] * 4)
        data = RNG.normal(size=(12, 7, 5)) * np.array([1e-13, 1e-13, 1e-6, 1e-6, 1.0, 1e-4, 0.0])[:, None]
        data[:, 6] = codes[:, None]
        events = np.column_stack([10 * np.arange(12), np.zeros(12, int), codes])
        named = {"face": 1, "house": 2, "tool/hammer": 3}
        epochs = mne.EpochsArray(data, info, events, tmin=-0.02, event_id=named, verbose="error")
        found = from_epochs(epochs)
        assert found.layers == ("-0.02 s", "-0.01 s", "0 s", "0.01 s", "0.02 s")
        assert found.item_names == ("face", "house", "tool/hammer")
        means = np.stack([data[codes == code].mean(axis=0) for code in (1, 2, 3)])
        scaled = [means[:, some] / np.sqrt((means[:, some] ** 2).mean()) for some in ([0, 1], [2, 3])]
        np.testing.assert_allclose(found["0.01 s"], np.concatenate(scaled, axis=1)[:, :, 3], rtol=1e-5)
        assert from_epochs(epochs["face", "house"]).item_names == ("face", "house")
        assert from_epochs(epochs, average=False)["0 s"].shape == (12, 4)
        assert from_epochs(epochs, picks="mag").n_units == (2,) * 5
        raw = mne.io.RawArray(RNG.normal(size=(7, 200)), info, verbose="error")
        settings = {"tmin": 0.0, "tmax": 0.04, "baseline": None, "preload": False, "verbose": "error"}
        assert from_epochs(mne.Epochs(raw, events, named, **settings)).n_units == (4,) * 5
        models = {"m": RNG.normal(size=(3, 4))}
        group = ta.compare_with_group({"a": found, "b": found, "c": found}, models, permutations=19)
        assert group.regions == found.layers

    def test_what_are_no_epochs(self) -> None:
        with pytest.raises(InvalidInput, match="Got ndarray: give MNE epochs"):
            from_epochs(self.DATA)
