"""Commands about machines: `doctor` looks whether this one can run weft, `package` writes what the workers of a
cluster need. Neither needs a project."""
