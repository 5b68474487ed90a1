# Serves one ONNX file that `rightly export` wrote, with onnxruntime alone: no torch, no SciPy.
#
#     docker build -t rightly-serve .
#     docker run --read-only -p 8000:8000 -v "$PWD/model.onnx:/model.onnx:ro" rightly-serve
#
# .ci/check-serve runs the same steps without Docker. The Python is that of constraints.txt.
FROM python:3.11-slim AS build
WORKDIR /source
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.11-slim
COPY requirements-serve.txt /
RUN pip install --no-cache-dir -r /requirements-serve.txt
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir --no-deps /wheels/*.whl && rm -r /wheels
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65534:65534
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s CMD ["python", "-c", \
    "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["rightly", "serve", "--host", "0.0.0.0", "--port", "8000"]
CMD ["/model.onnx"]
