// The S3 server of the tests: versitygw's own code for requests, signatures and files, for one user and on a unix socket.
// Its command also has backends, user stores and a web site, which take as long again to compile.
//
//	s3-server SOCKET OBJECTS METADATA		with AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
//
// SOCKET is relative to OBJECTS, where the server goes; the other two are absolute.
package main

import (
	"fmt"
	"os"

	"github.com/versity/versitygw/auth"
	"github.com/versity/versitygw/backend/meta"
	"github.com/versity/versitygw/backend/posix"
	"github.com/versity/versitygw/s3api"
	"github.com/versity/versitygw/s3api/middlewares"
)

// The values that versitygw's command has by default.
const (
	connections   = 250000
	requests      = 100000
	parts         = 10000
	concurrency   = 5000
	copyThreshold = 5 << 30
	region        = "us-east-1"
)

func serve(socket, objects, metadata string) error {
	root := middlewares.RootUserConfig{Access: os.Getenv("AWS_ACCESS_KEY_ID"), Secret: os.Getenv("AWS_SECRET_ACCESS_KEY")}
	users, err := auth.New(&auth.Opts{RootAccount: auth.Account{Access: root.Access, Secret: root.Secret, Role: auth.RoleAdmin}})
	if err != nil {
		return err
	}
	sidecar, err := meta.NewSideCar(metadata)
	if err != nil {
		return err
	}
	options := posix.PosixOpts{SideCarDir: metadata, Concurrency: concurrency, CopyObjectThreshold: copyThreshold}
	options.SetNewDirPerm(0o755)
	options.SetNewFilePerm(0o644)
	files, err := posix.New(objects, sidecar, options)
	if err != nil {
		return err
	}
	server, err := s3api.New(files, root, region, users, nil, nil, nil, nil, s3api.WithQuiet(), s3api.WithMpMaxParts(parts),
		s3api.WithConcurrencyLimiter(connections, requests))
	if err != nil {
		return err
	}
	return server.ServeMultiPort([]string{socket})
}

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: s3-server SOCKET OBJECTS METADATA")
		os.Exit(2)
	}
	if err := serve(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		fmt.Fprintln(os.Stderr, "s3-server:", err)
		os.Exit(1)
	}
}
