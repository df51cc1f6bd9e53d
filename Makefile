.PHONY: demo

# The main job: a controller at work for 15 seconds, on an embedded server.
demo:
	go run ./examples/controller -for 15s
