// Package pydecl reads the functions of Python sources without running them.
//
// Python's own parser reads a source: a child process runs read.py of this package, which gets
// the source on its standard input and prints the declarations. So a source means here what it
// means to the interpreter, and a mistake in it has the interpreter's message.
package pydecl
