package main

import (
	"fmt"
	"os"
	"path/filepath"
)

// table is a CSV whose first column is a time in ns. Its rows are there even if the program is killed.
type table struct{ file *os.File }

func newTable(a arguments, name, columns string) table {
	path := filepath.Join(a.out, name)
	file, err := os.Create(path)
	if err != nil {
		fail("cannot write %s: %v", path, err)
	}
	fmt.Fprintln(file, "time_ns,"+columns)
	return table{file}
}

func (t table) row(format string, values ...any) { fmt.Fprintf(t.file, format+"\n", values...) }
