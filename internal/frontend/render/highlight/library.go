package highlight

import (
	"embed"
	"path"
	"strings"
	"sync"
)

//go:embed lexers/*.xml lexers/index.txt lexers/COPYING
var files embed.FS

// library has the lexers that were asked for.
type library struct {
	byName   map[string]string // names, and endings of file names after a dot: the file
	byEnding map[string]string

	mu     sync.Mutex        // held while a lexer is loaded or works
	lexers map[string]*Lexer // by file; nil for one that cannot be read
	run    run
}

var shared = sync.OnceValue(func() *library {
	l := &library{byName: make(map[string]string), byEnding: make(map[string]string), lexers: make(map[string]*Lexer)}
	index, _ := files.ReadFile("lexers/index.txt") // it is embedded
	for line := range strings.Lines(string(index)) {
		fields := strings.Split(strings.TrimSuffix(line, "\n"), "\t")
		if len(fields) != 3 {
			continue
		}
		add(l.byName, fields[1], fields[0])
		add(l.byEnding, fields[2], fields[0])
	}
	return l
})

// add notes a file for each of the names, except names that another file has already.
func add(to map[string]string, names, file string) {
	for name := range strings.SplitSeq(names, ",") {
		if _, taken := to[name]; !taken && name != "" {
			to[name] = file
		}
	}
}

// Find returns the lexer for a language: its name or one of its short names in any case,
// the ending of its files with or without a dot, or the name of a file. Nil means that
// the language is unknown.
func Find(name string) *Lexer {
	name = strings.ToLower(strings.TrimSpace(name))
	if name == "" {
		return nil
	}
	l := shared()
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.find(name)
}

func (l *library) find(name string) *Lexer {
	file, ok := l.byName[name]
	if !ok {
		file, ok = l.byEnding[strings.TrimPrefix(name, ".")]
	}
	if !ok {
		file, ok = l.byEnding[strings.TrimPrefix(path.Ext(name), ".")]
	}
	if !ok {
		return nil
	}
	lexer, ok := l.lexers[file]
	if !ok {
		data, err := files.ReadFile("lexers/" + file + ".xml")
		if err == nil {
			lexer, err = parse(data)
		}
		if err != nil {
			lexer = nil
		} else {
			lexer.all = l
		}
		l.lexers[file] = lexer
	}
	return lexer
}

// Detect returns the lexer for the language that the first line of a text names, nil if
// it names none.
func Detect(line string) *Lexer {
	line = strings.TrimSpace(line)
	if shebang, ok := strings.CutPrefix(line, "#!"); ok {
		for word := range strings.FieldsSeq(shebang) {
			name := strings.TrimRight(path.Base(word), "0123456789.-")
			if name != "env" && !strings.Contains(word, "=") && !strings.HasPrefix(word, "-") {
				return Find(languageOf(name))
			}
		}
		return nil
	}
	for _, d := range []struct{ prefix, language string }{
		{"<?php", "php"},
		{"<?xml", "xml"},
		{"<!doctype html", "html"},
		{"<html", "html"},
		{"diff --git ", "diff"},
		{"--- a/", "diff"},
		{"package main", "go"},
		{"FROM ", "docker"},
	} {
		if len(line) >= len(d.prefix) && strings.EqualFold(line[:len(d.prefix)], d.prefix) {
			return Find(d.language)
		}
	}
	return nil
}

// languageOf returns the language that a program runs.
func languageOf(program string) string {
	switch program {
	case "node":
		return "javascript"
	case "deno", "bun":
		return "typescript"
	case "Rscript":
		return "r"
	case "make":
		return "makefile"
	}
	return program
}
