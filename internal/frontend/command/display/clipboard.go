package display

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"

	"github.com/atotto/clipboard"
)

// maxSequence is how many bytes of base64 terminals take in an OSC 52 sequence; what
// they do with more differs.
const maxSequence = 74_994

// Copy puts text on the system's clipboard. Where there is none it asks the terminal to
// do so with an OSC 52 sequence, which also works over SSH; terminal is nil if there is
// no terminal.
func Copy(text string, terminal io.Writer) error {
	return copyWith(clipboard.WriteAll, text, terminal)
}

func copyWith(system func(string) error, text string, terminal io.Writer) error {
	err := system(text)
	if err == nil {
		return nil
	}
	if terminal == nil {
		return fmt.Errorf("there is no clipboard: %w", err)
	}
	encoded := base64.StdEncoding.EncodeToString([]byte(text))
	if len(encoded) > maxSequence {
		return errors.New("there is no clipboard, and the text is too long for the terminal's")
	}
	_, err = io.WriteString(terminal, "\x1b]52;c;"+encoded+"\a")
	return err
}
