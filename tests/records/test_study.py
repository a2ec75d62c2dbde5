import polars as pl
import pytest

from calibrant.core.errors import InputError, SchemaError
from calibrant.data import Study

DRAWS = pl.DataFrame(
    {"question_id": ["a"], "model": ["m"], "purpose": ["answer"], "draw": [0], "text": ["x"]}
)


def test_tables_and_results_come_back(tmp_path):
    study = Study(tmp_path / "s")
    study.write("draws", DRAWS.with_columns(extra=pl.lit(1)))
    assert study.has("draws")
    assert study.read("draws")["extra"].to_list() == [1]
    study.write_result("audit", {"schema": "calibrant.audit/1", "results": []})
    assert study.results() == {"audit": {"schema": "calibrant.audit/1", "results": []}}
    assert not list(study.path.rglob("*.partial"))


def test_missing_column_is_named(tmp_path):
    with pytest.raises(SchemaError, match="needs a column 'purpose'"):
        Study(tmp_path).write("draws", DRAWS.drop("purpose"))


def test_wrong_type_is_an_error_not_null(tmp_path):
    with pytest.raises(SchemaError, match="another type"):
        Study(tmp_path).write("draws", DRAWS.with_columns(draw=pl.lit("first")))


def test_other_version_is_refused(tmp_path):
    study = Study(tmp_path)
    study.table_path("draws").parent.mkdir()
    DRAWS.write_parquet(study.table_path("draws"), metadata={"calibrant.table": "draws/9"})
    with pytest.raises(SchemaError, match=r"draws/1.*draws/9"):
        study.read("draws")


def test_missing_table_says_what_to_run(tmp_path):
    with pytest.raises(InputError, match="calibrant run"):
        Study(tmp_path).read("scores")


def test_bad_toml_names_the_file(tmp_path):
    (tmp_path / "study.toml").write_text("a = = 1")
    with pytest.raises(InputError, match=r"study\.toml"):
        _ = Study(tmp_path).config


@pytest.mark.parametrize("text", ["a = " + "[" * 20_000, "a = [", "a = '\\u00e9"])
def test_settings_that_are_no_toml_are_refused_in_one_line(tmp_path, text):
    (tmp_path / "study.toml").write_text(text)
    with pytest.raises(InputError, match="not valid TOML"):
        _ = Study(tmp_path).config
