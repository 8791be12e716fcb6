package server_test

import (
	"os"
	"testing"

	"loki/internal/frontend/cli"
	"loki/internal/frontend/server"
	"loki/internal/frontend/server/servertest"
)

func TestMain(m *testing.M) {
	servertest.Main(m, func() int {
		return cli.Main(os.Args[1:], os.Environ(), cli.Terminal(), cli.Faces{Server: server.Serve})
	})
}
