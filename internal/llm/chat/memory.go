package chat

import "fmt"

// Memory says what a model may do with what is remembered of earlier conversations.
type Memory string

// The modes. A model that may not write proposes what to write.
const (
	MemoryPropose Memory = "propose" // the default
	MemoryWrite   Memory = "write"
	MemoryRead    Memory = "read"
	MemoryOff     Memory = "off"
)

// ParseMemory reads a mode. Related programs write true and false.
func ParseMemory(text string) (Memory, error) {
	switch m := Memory(text); m {
	case MemoryPropose, MemoryWrite, MemoryRead, MemoryOff:
		return m, nil
	case "true":
		return MemoryPropose, nil
	case "false":
		return MemoryOff, nil
	}
	return "", fmt.Errorf("want propose, write, read or off, not %q", text)
}
