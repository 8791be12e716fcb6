// Package patch applies unified diffs that a model wrote, and makes unified diffs for
// people to read.
//
// A patch is a list of hunks. A hunk has unchanged lines (context), removed lines and
// added lines. Its old block is the context and the removed lines, in order; its new
// block the context and the added lines. There is no fuzz: the file has to hold an old
// block exactly, line ends aside, or the patch does not apply.
package patch

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Patch is a change of one file.
type Patch struct {
	Hunks []Hunk // at least one
	New   bool   // the file does not exist before: its old name is /dev/null
}

// Hunk is one change.
type Hunk struct {
	Header string // the line that begins it
	Line   int    // from 1, where its header says that the old block is; 0 if it does not
	Lines  []Line

	noNewline bool // the new block ends the file, without a line end
	newline   bool // the new block has a line end where the old one ended the file without
}

// Line is one line of a hunk.
type Line struct {
	Op   byte   // ' ' unchanged, '-' removed, '+' added
	Text string // without line end
}

// Parse reads a patch. Lines outside of hunks, such as the names of files, are
// skipped. The lengths in a hunk's header determine its end if they are right; wrong
// ones are ignored, because models count badly. A patch that removes or renames the file is an error.
func Parse(text string) (Patch, error) {
	lines := splitLines(text)
	var p Patch
	var hunks []Hunk
	files := 0
	for i := 0; i < len(lines); {
		switch {
		case isHeader(lines[i]):
			h, n := parseHunk(lines[i:])
			hunks = append(hunks, h)
			i += n
			continue
		case startsFile(lines[i:]):
			if files++; files > 1 {
				return p, errors.New("the patch changes more than one file; make one call for each")
			}
			p.New = isNull(lines[i])
			i++ // the second line of the two
			if isNull(lines[i]) {
				return p, errors.New("the patch removes the file, so nothing was changed; fs_rm removes files")
			}
		case strings.HasPrefix(lines[i], "rename from ") || strings.HasPrefix(lines[i], "copy from "):
			return p, errors.New("the patch renames or copies the file, so nothing was changed; fs_patch changes the contents of one file. Write the new file with fs_write, and remove the old one with fs_rm")
		case strings.HasPrefix(lines[i], "GIT binary patch"):
			return p, errors.New("the patch is of binary data, so nothing was changed")
		}
		i++
	}
	if len(hunks) == 0 {
		return p, errors.New(`the patch has no hunk. A hunk begins with a line "@@ -1,3 +1,4 @@", and its lines begin with a blank, "-" or "+"`)
	}
	for i, h := range hunks {
		if len(h.Lines) == 0 {
			return p, fmt.Errorf("hunk %d (%s) is empty", i+1, h.Header)
		}
	}
	p.Hunks = hunks
	return p, nil
}

// isNull reports whether a line names no file, as for one that is new or removed.
func isNull(line string) bool {
	name, _, _ := strings.Cut(line[len("--- "):], "\t")
	return strings.TrimSpace(name) == "/dev/null"
}

// splitLines splits text at line ends, which the lines do not have.
func splitLines(text string) []string {
	if text == "" {
		return nil
	}
	lines := strings.Split(strings.TrimSuffix(text, "\n"), "\n")
	for i, l := range lines {
		lines[i] = strings.TrimSuffix(l, "\r")
	}
	return lines
}

func isHeader(line string) bool { return line == "@@" || strings.HasPrefix(line, "@@ ") }

// startsFile reports whether lines begin with the two that name the files of a diff.
func startsFile(lines []string) bool {
	return len(lines) > 1 && strings.HasPrefix(lines[0], "--- ") && strings.HasPrefix(lines[1], "+++ ")
}

// parseHunk reads the hunk at the start of lines and returns how many lines it has,
// header included.
func parseHunk(lines []string) (h Hunk, n int) {
	h.Header = lines[0]
	var oldLen, newLen int
	counted := parseRange(lines[0], &h.Line, &oldLen, &newLen)
	if counted {
		if n, ok := h.parseCounted(lines[1:], oldLen, newLen); ok {
			return h, n + 1
		}
		h.Lines, h.noNewline, h.newline = nil, false, false
	}
	i := 1
	for ; i < len(lines) && !startsFile(lines[i:]) && h.add(lines[i]); i++ {
	}
	return h, i
}

// parseCounted reads lines until there are as many as the header says. ok is false if they
// cannot be read so, or if more lines of a hunk follow.
func (h *Hunk) parseCounted(lines []string, oldLen, newLen int) (n int, ok bool) {
	for oldLen > 0 || newLen > 0 {
		if n == len(lines) || !h.add(lines[n]) {
			return 0, false
		}
		if op := lines[n]; !strings.HasPrefix(op, `\`) {
			last := h.Lines[len(h.Lines)-1]
			if last.Op != '+' {
				oldLen--
			}
			if last.Op != '-' {
				newLen--
			}
		}
		n++
		if oldLen < 0 || newLen < 0 {
			return 0, false
		}
	}
	if n < len(lines) && strings.HasPrefix(lines[n], `\`) {
		h.add(lines[n])
		n++
	}
	rest := lines[n:]
	for i, l := range rest {
		if isHeader(l) || startsFile(rest[i:]) {
			break
		}
		// Empty lines between hunks and at the end do not belong to them. Any other
		// line that looks like one of a hunk shows that the header is wrong.
		if l != "" && strings.IndexByte(" +-", l[0]) >= 0 {
			return 0, false
		}
		if l != "" {
			break
		}
	}
	return n, true
}

// add adds a line of the patch, and reports whether it belongs to a hunk.
func (h *Hunk) add(line string) bool {
	switch {
	case line == "":
		h.Lines = append(h.Lines, Line{Op: ' '})
	case strings.IndexByte(" +-", line[0]) >= 0:
		h.Lines = append(h.Lines, Line{Op: line[0], Text: line[1:]})
	case strings.HasPrefix(line, `\ `) && len(h.Lines) > 0: // "\ No newline at end of file"
		switch h.Lines[len(h.Lines)-1].Op {
		case '-':
			h.newline = true
		default:
			h.noNewline = true
		}
	default:
		return false
	}
	return true
}

// parseRange reads "@@ -line,length +line,length @@". A length that is left out is 1. The
// line before which something is inserted counts as that of the old block.
func parseRange(header string, line, oldLen, newLen *int) bool {
	fields := strings.Fields(header)
	if len(fields) < 3 || !strings.HasPrefix(fields[1], "-") || !strings.HasPrefix(fields[2], "+") {
		return false
	}
	read := func(text string, at, length *int) bool {
		start, n, found := strings.Cut(text[1:], ",")
		v, err := strconv.Atoi(start)
		if err != nil || v < 0 {
			return false
		}
		*at, *length = v, 1
		if found {
			if *length, err = strconv.Atoi(n); err != nil || *length < 0 {
				return false
			}
		}
		return true
	}
	var newLine int
	if !read(fields[1], line, oldLen) || !read(fields[2], &newLine, newLen) {
		*line = 0
		return false
	}
	if *oldLen == 0 {
		*line++
	}
	return *oldLen > 0 || *newLen > 0
}
