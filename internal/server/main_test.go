package server_test

import (
	"os"
	"testing"

	"loki/internal/cli"
	"loki/internal/server"
	"loki/internal/server/servertest"
)

func TestMain(m *testing.M) {
	servertest.Main(m, func() int {
		return cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{Server: server.Serve})
	})
}
