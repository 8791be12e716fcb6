package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/base/file/atomicfile"
	"loki/internal/llm/catalog/models"
)

// noticesFile holds, in the state directory, the keys of the notices that the user has
// seen, one a line.
const noticesFile = "notices"

// Warnings returns what the user should know of the program and has not been returned
// before: what is wrong with its configuration, and what came up since where no request could
// show it.
func (a *App) Warnings() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	warnings := a.warnings
	a.warnings = nil
	return warnings
}

// later has [App.Warnings] return text.
func (a *App) later(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.warnings = append(a.warnings, text)
}

// Notices adds to [App.Warnings] what the user has to know of the configuration once, and
// puts an outdated list of models aside.
func (a *App) Notices() {
	for _, note := range a.Config.Notes {
		a.noticeOnce(note, note, a.later)
	}
	if a.outdatedModels == "" {
		return
	}
	file := a.Paths.ModelsOverrideFile
	text := fmt.Sprintf("%s is a list of models for version %s, and this is version %s: the built-in list is used", file, a.outdatedModels, Version)
	if renamed, err := models.PutAside(file, a.outdatedModels); err == nil {
		a.later(text + ", and the file is " + filepath.Base(renamed) + " now; loki --sync-models fetches a new list")
		return
	}
	a.noticeOnce(text, text, a.later)
}

// noticeOnce shows text, once for each key: never again on this machine, as far as the state
// directory can be read and written.
func (a *App) noticeOnce(key, text string, show func(text string)) {
	file := filepath.Join(a.Paths.StateDir, noticesFile)
	src, err := os.ReadFile(file)
	if err == nil && slices.Contains(strings.Split(string(src), "\n"), key) {
		return
	}
	show(text)
	if a.looking {
		return // it is shown again
	}
	_ = atomicfile.Append(file, []byte(key+"\n")) // what is not written is shown once more
}
