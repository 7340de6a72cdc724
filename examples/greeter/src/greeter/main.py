"""The REST surface: an ASGI application, which Carrel runs with uvicorn."""
import os

from fastapi import FastAPI

app = FastAPI()


@app.get("/healthz")
def healthz():
    return {"ok": True}


@app.get("/greet/{name}")
def greet(name: str):
    return {"text": f"{os.environ['GREETING']}, {name}"}
