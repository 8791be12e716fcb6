// Command loki works with language models from the terminal.
package main

import (
	"os"

	"loki/internal/cli"
	"loki/internal/repl"
)

func main() {
	if repl.Guard(os.Args[1:]) {
		return
	}
	os.Exit(cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), repl.Run))
}
