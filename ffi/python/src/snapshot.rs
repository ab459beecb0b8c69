//! Converts a document of the library to nested dictionaries; `python/shmlimit/_snapshot.py` makes dataclasses from
//! a snapshot's document.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use shmlimit::{Document, Value};

/// The document with the same names and values: `json.dumps` prints it as the tool does.
pub fn as_dict<'py>(py: Python<'py>, document: &Document) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (name, value) in document {
        dict.set_item(name.as_ref(), to_object(py, value)?)?;
    }
    Ok(dict)
}

fn to_object<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Bool(value) => value.into_pyobject(py)?.to_owned().into_any(),
        Value::Integer(value) => value.into_pyobject(py)?.into_any(),
        Value::Float(value) => value.into_pyobject(py)?.into_any(),
        Value::Text(value) => value.into_pyobject(py)?.into_any(),
        Value::List(values) => {
            let list = PyList::empty(py);
            for value in values {
                list.append(to_object(py, value)?)?;
            }
            list.into_any()
        }
        Value::Object(document) => as_dict(py, document)?.into_any(),
        _ => py.None().into_bound(py),
    })
}
