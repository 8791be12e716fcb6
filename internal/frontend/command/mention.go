package command

import (
	"os"
	"path/filepath"
	"strings"

	"loki/internal/frontend/command/completion"
)

// mentions returns the files and directories that a prompt names behind an @, at its beginning or behind a blank, and the
// prompt as the model gets it. "@a.txt, please" names a.txt, and @"my file.txt" one with a blank in its name. Names of what does not exist are text, and
// so is what follows @@, which means one @. exists reports whether there is something at a path.
func mentions(prompt string, exists func(path string) bool) (text string, sources []string) {
	var b strings.Builder
	for rest := prompt; rest != ""; {
		at := strings.IndexByte(rest, '@')
		if at < 0 {
			b.WriteString(rest)
			break
		}
		b.WriteString(rest[:at])
		begins := at == 0 && b.Len() == 0 || at > 0 && strings.IndexByte(separators, rest[at-1]) >= 0
		rest = rest[at:]
		if !begins {
			b.WriteByte('@')
			rest = rest[1:]
			continue
		}
		if strings.HasPrefix(rest, "@@") {
			b.WriteByte('@')
			rest = rest[2:]
			continue
		}
		path, length := mentionAt(rest, exists)
		if path != "" {
			sources = append(sources, path)
		}
		b.WriteString(rest[:length])
		rest = rest[length:]
	}
	return b.String(), sources
}

// Bounds of what is looked at behind an @.
const (
	maxPath        = 4096 // bytes
	maxPunctuation = 8    // characters behind a path
)

// mentionAt returns the path that is named at the start of s, which is an @, "" for none, and how long the mention is.
func mentionAt(s string, exists func(path string) bool) (path string, length int) {
	if s[1:] != "" && (s[1] == '"' || s[1] == '\'') {
		if end := strings.IndexByte(s[2:], s[1]); end > 0 && exists(s[2:2+end]) {
			return s[2 : 2+end], end + 3
		}
		return "", 1
	}
	end := len(s)
	if i := strings.IndexAny(s, separators); i >= 0 {
		end = i
	}
	word := s[1:min(end, maxPath)]
	for range maxPunctuation {
		if word == "" {
			break
		}
		if exists(word) {
			return word, 1 + len(word)
		}
		if strings.IndexByte(".,;:!?)]}'\"", word[len(word)-1]) < 0 {
			break
		}
		word = word[:len(word)-1]
	}
	return "", 1
}

// missingFiles returns what a prompt seems to name behind an @ that does not exist: a path with a slash or an ending.
func missingFiles(prompt string, exists func(path string) bool) (paths []string) {
	for _, word := range strings.Fields(prompt) {
		path, ok := strings.CutPrefix(word, "@")
		path = strings.TrimRight(path, ".,;:!?)]}'\"")
		if ok && path != "" && !strings.HasPrefix(path, "@") && filepath.Ext(path) != "" && !strings.ContainsAny(path, "@()=") && !exists(path) {
			paths = append(paths, path)
		}
	}
	return paths
}

// exists reports whether there is something at the path of a source.
func (c *Console) exists(path string) bool {
	_, err := os.Stat(c.App.Loader().Absolute(path))
	return err == nil
}

// completeMention returns the paths that the last word of a prompt, which begins with an @, can name.
func completeMention(text string) Completion {
	from := strings.LastIndexAny(text, separators) + 1
	word, ok := strings.CutPrefix(text[from:], "@")
	if !ok || strings.HasPrefix(word, "@") {
		return Completion{}
	}
	cut := strings.LastIndexByte(word, '/') + 1
	found := Completion{From: from + 1 + cut}
	for _, path := range paths(word) {
		if strings.ContainsAny(path.Value, separators+`"'`) {
			continue // it would have to be quoted from the @ on
		}
		path.Value = path.Value[cut:]
		found.Candidates = append(found.Candidates, path)
	}
	found.Candidates = rankCandidates(word[cut:], found.Candidates)
	return found
}

// paths returns what is in the directory of a path that is being typed, each with the directory in front. Directories end with a slash.
// Names that begin with a dot have to be asked for.
func paths(typed string) (found []Candidate) {
	dir := typed[:strings.LastIndexByte(typed, '/')+1]
	prefix := dir
	if strings.HasPrefix(typed[len(dir):], ".") {
		prefix += "."
	}
	for _, f := range completion.Files(prefix, false) {
		found = append(found, Candidate{Value: f.Value})
	}
	return found
}
