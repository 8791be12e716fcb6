package app

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loki/internal/atomicfile"
	"loki/internal/catalog/models"
)

// noticesFile holds, in the state directory, the keys of the notices that the user has
// seen, one a line.
const noticesFile = "notices"

// noticeOnce warns of text, once for each key: never again on this machine, as far as the
// state directory can be read and written.
func (a *App) noticeOnce(key, text string) {
	if a.seen(key) {
		return
	}
	file := filepath.Join(a.Paths.StateDir, noticesFile)
	src, err := os.ReadFile(file)
	if err == nil && slices.Contains(strings.Split(string(src), "\n"), key) {
		return
	}
	a.warnText(text)
	_ = atomicfile.Append(file, []byte(key+"\n")) // what is not written is shown once more
}

// Notices reports, with [App.OnWarning], what the user has to know of the configuration once,
// and puts an outdated list of models aside.
func (a *App) Notices() {
	for _, note := range a.Config.Notes {
		a.noticeOnce(note, note)
	}
	if a.outdatedModels == "" {
		return
	}
	file := a.Paths.ModelsOverrideFile
	text := fmt.Sprintf("%s is a list of models for version %s, and this is version %s: the built-in list is used", file, a.outdatedModels, Version)
	if renamed, err := models.PutAside(file, a.outdatedModels); err == nil {
		a.notice(text, text+", and the file is "+filepath.Base(renamed)+" now; loki --sync-models fetches a new list")
		return
	}
	a.noticeOnce(text, text)
}

// notice warns of text, once for each key in this process.
func (a *App) notice(key, text string) {
	if !a.seen(key) {
		a.warnText(text)
	}
}

// seen reports whether it was called with key before.
func (a *App) seen(key string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.noticed[key] {
		return true
	}
	if a.noticed == nil {
		a.noticed = make(map[string]bool)
	}
	a.noticed[key] = true
	return false
}

func (a *App) warnText(text string) {
	if a.OnWarning != nil {
		a.OnWarning(text)
	}
}
