"""Pictures."""

import matplotlib
import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.container import BarContainer

import commq
from commq._queries import PICTURES


@pytest.fixture(scope="module")
def run(store: commq.Store) -> commq.Run:
    return store["cg.A.4"]


@pytest.fixture(autouse=True)
def closed() -> object:
    yield
    plt.close("all")


def test_a_matrix(run: commq.Run) -> None:
    ax = run.density(collectives="none").plot()
    drawn = ax.images[0].get_array()
    assert drawn is not None
    got = np.nan_to_num(np.ma.filled(drawn, np.nan))
    assert got.tolist() == [[416, 1264, 0, 0], [1264, 0, 416, 0], [0, 416, 0, 1264], [0, 0, 1264, 416]]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("destination rank", "source rank")
    assert ax.get_title() == "Messages from rank to rank: cg.A.4"


def test_bars_have_units(run: commq.Run) -> None:
    answer = run.by_rank()
    ax = answer.plot()
    bars = ax.containers[0]
    assert isinstance(bars, BarContainer)
    assert np.allclose(np.asarray(bars.datavalues)[:4], answer.df()["sent_bytes"] / 1e6)
    assert ax.get_ylabel() == "sent data [MB]"


def test_bars_of_places_have_names(run: commq.Run) -> None:
    ax = run.callsite_time().plot()
    assert "conj_grad cg.f:877" in [label.get_text() for label in ax.get_yticklabels()]


def test_points_and_laws(store: commq.Store) -> None:
    ax = store.select("mg.W.*").scaling().plot()
    points, law = ax.lines
    assert np.asarray(points.get_xdata()).tolist() == [2, 4, 8, 16, 32]
    assert law.get_linestyle() == "--"
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("ranks", "messages")


@pytest.mark.parametrize("kind", sorted({picture.kind for picture in PICTURES.values()}))
def test_each_kind_is_drawn(run: commq.Run, kind: str) -> None:
    query = next(name for name, picture in PICTURES.items() if picture.kind == kind and name != "files")
    ax = run.query(query).plot()
    ax.figure.canvas.draw()
    assert ax.has_data()


def test_nothing_to_draw(run: commq.Run) -> None:
    assert run.files().plot().texts[0].get_text() == "nothing to draw"


def test_the_look_is_that_of_commq() -> None:
    with plt.style.context(commq.style()):
        colours = matplotlib.rcParams["axes.prop_cycle"].by_key()["color"]
    assert [to_hex("#" + c.removeprefix("#")) for c in colours][:2] == ["#0072b2", "#e69f00"]


def test_axes_and_options_of_ones_own(run: commq.Run) -> None:
    _, ax = plt.subplots()
    assert run.density().plot(ax, cmap="Blues") is ax
    assert ax.images[0].get_cmap().name == "Blues"


def test_what_has_no_picture(run: commq.Run, store: commq.Store) -> None:
    with pytest.raises(TypeError, match="does not say how it is drawn"):
        run.sql("SELECT 1 AS one").plot()
    with pytest.raises(TypeError, match="only answers of queries"):
        run.sql("SELECT 1 AS one").picture()
    with pytest.raises(ValueError, match="a picture for each"):
        store.select("cg.A.*").density().plot()


def test_the_picture_that_commq_draws(run: commq.Run, tmp_path: object) -> None:
    answer = run.density(collectives="none")
    png = answer.picture()
    assert png.data.startswith(b"\x89PNG")
    assert png._repr_png_() == png.data and png._repr_svg_() is None
    svg = answer.picture("svg")._repr_svg_()
    assert svg is not None and "collectives: none" in svg
    png.save(f"{tmp_path}/density.png")
