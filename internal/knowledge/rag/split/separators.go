package split

import "strings"

// separators returns where a text of the kind ext is cut, the best place first. The last one is
// always empty: between any two characters.
func separators(ext string) []string {
	var first []string
	switch ext {
	case "c", "cc", "cpp":
		first = lines("class void int float double if for while switch case")
	case "go":
		first = lines("func var const type if for switch case")
	case "java":
		first = lines("class public protected private static if for while switch case")
	case "js", "mjs", "cjs":
		first = lines("function const let var class if for while switch case default")
	case "php":
		first = lines("function class if foreach while do switch case")
	case "proto":
		first = lines("message service enum option import syntax")
	case "py":
		first = []string{"\nclass ", "\ndef ", "\n\tdef "}
	case "rst":
		first = []string{"\n===\n", "\n---\n", "\n***\n", "\n.. "}
	case "rb":
		first = lines("def class if unless while for do begin rescue")
	case "rs":
		first = lines("fn const let if while for loop match const")
	case "scala":
		first = lines("class object def val var if for while match case")
	case "swift":
		first = lines("func class struct enum if for while do switch case")
	case "tex":
		first = []string{"\n\\chapter{", "\n\\section{", "\n\\subsection{", "\n\\subsubsection{"}
		for _, name := range strings.Fields("enumerate itemize description list quote quotation verse verbatim align") {
			first = append(first, "\n\\begin{"+name+"}")
		}
		first = append(first, "$$", "$")
	case "htm", "html":
		for _, name := range strings.Fields("body div p br li h1 h2 h3 h4 h5 h6 span table tr td th ul ol header footer nav head style script meta title") {
			first = append(first, "<"+name+">")
		}
		return append(first, " ", "")
	case "sol":
		first = append(lines("pragma using contract interface library constructor type function event modifier error struct enum if for while"),
			"\ndo while ", "\nassembly ")
	}
	return append(first, "\n\n", "\n", " ", "")
}

// lines returns a separator for each word: at the start of a line, with a blank behind it.
func lines(words string) []string {
	var out []string
	for word := range strings.FieldsSeq(words) {
		out = append(out, "\n"+word+" ")
	}
	return out
}
