package app

import (
	"context"
	"os/exec"
	"runtime"

	"loki/internal/base/ask"
	"loki/internal/base/fault"
)

// LoginClient returns the name of the only client that logs in with OAuth, or of the one that
// the user chooses. Without one it is an error with code Config.
func (a *App) LoginClient(ctx context.Context, asker ask.Asker) (string, error) {
	var names []string
	for _, c := range a.Config.Clients {
		if auth, err := c.Field(a.Env, "auth"); err == nil && auth == "oauth" {
			names = append(names, c.Name)
		}
	}
	switch len(names) {
	case 0:
		return "", fault.New(fault.Config, "no client logs in with OAuth").
			WithHint("set auth: oauth and what it needs for a client of type claude, gemini, openai, openai-compatible or azure-openai in config.yaml; an MCP server is named as mcp:NAME")
	case 1:
		return names[0], nil
	}
	return asker.Ask(ctx, ask.Question{Kind: ask.Select, Text: "Log in to which client?", Options: names})
}

// OpenBrowser tries to open an address. A failure is not reported.
func (a *App) OpenBrowser(address string) {
	var opener *exec.Cmd
	switch runtime.GOOS {
	case "darwin":
		opener = exec.Command("open", address)
	case "windows":
		opener = exec.Command("rundll32", "url.dll,FileProtocolHandler", address)
	default:
		opener = exec.Command("xdg-open", address)
	}
	opener.Env = a.ProgramChild().Environ
	if dir, err := a.OwnDir("browser"); err == nil {
		opener.Dir = dir
	}
	if opener.Start() == nil {
		go func() { _ = opener.Wait() }() // it ends with the browser, perhaps after this program
	}
}
