module ironbell.dev/pause

go 1.21
