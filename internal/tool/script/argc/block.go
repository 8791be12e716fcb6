package argc

import (
	"bytes"
	"fmt"
	"os"
	"strings"

	"loki/internal/base/file/atomicfile"
)

// Build returns src with the generated code that parses its command line. The code takes
// the place of the one of an earlier Build or of a line that evaluates the tags at run
// time, and is appended if there is neither. All other bytes stay, and building again
// gives the same bytes. The error is an *[Error].
func Build(src []byte, o Options) ([]byte, error) {
	block, err := Block(src, o)
	if err != nil {
		return nil, err
	}
	_, regions, err := splitGenerated(src)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if len(regions) == 0 {
		out.Write(src)
		if len(src) > 0 && src[len(src)-1] != '\n' {
			out.WriteByte('\n')
		}
		out.WriteString("\n" + block)
		return out.Bytes(), nil
	}
	at := 0
	for i, r := range regions {
		out.Write(src[at:r.start])
		if i == 0 {
			out.WriteString(block)
		}
		at = r.end
	}
	out.Write(src[at:])
	return out.Bytes(), nil
}

// Block returns the generated code of a script between the two lines that mark it. The
// error is an *[Error].
func Block(src []byte, o Options) (string, error) {
	s, err := Parse(src)
	if err != nil {
		return "", err
	}
	return blockBegin + "\n# Generated from the comment tags; changes are lost.\n\n" + code(s, o, ` "$@"`) + blockEnd + "\n", nil
}

// BuildFile puts the generated code into a file. It writes only if that changes the file,
// and then replaces it at once, keeping its permissions; a symbolic link stays one. After
// an error the file is as it was.
func BuildFile(file string, o Options) (changed bool, err error) {
	src, err := os.ReadFile(file)
	if err != nil {
		return false, err
	}
	built, err := Build(src, o)
	if err != nil {
		return false, fmt.Errorf("%s: %w", file, err)
	}
	if bytes.Equal(src, built) {
		return false, nil
	}
	return true, atomicfile.Write(file, built, atomicfile.Options{})
}

// Eval returns the code that parses args for a script and runs its function, as a script
// evaluates it instead of having it built in. A word with a NUL, which no command line can
// hold, is an error; any other error is an *[Error]. [Fail] makes code of both.
func Eval(src []byte, args []string, o Options) (string, error) {
	var words strings.Builder
	for i, arg := range args {
		if strings.ContainsRune(arg, 0) {
			return "", fmt.Errorf("argument %d has a NUL byte", i+1)
		}
		words.WriteString(" " + Quote(arg))
	}
	s, err := Parse(src)
	if err != nil {
		return "", err
	}
	return code(s, o, words.String()), nil
}

// Fail returns code that ends the script that evaluates it with status 1, saying err on
// standard error.
func Fail(err error) string {
	text := strings.ReplaceAll(err.Error(), "\x00", "")
	return "builtin printf '%s\\n' " + Quote("error: "+text) + " >&2\nbuiltin exit 1\n"
}
