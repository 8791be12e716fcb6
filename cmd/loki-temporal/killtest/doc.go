// Package killtest runs graphs on a real Temporal server, which is a part of the test program, with workers that are killed.
// It is a module of its own, because the server has many dependencies and takes minutes to compile.
package killtest
