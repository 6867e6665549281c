# The server, as a user without rights, over a workspace that is mounted read-only:
#   docker build -t qkvsearch .
#   docker run --rm -p 8000:8000 -v ./shop:/workspace:ro -v ./secret.txt:/run/secrets/token:ro qkvsearch
FROM python:3.11-slim AS build
COPY . /source
RUN python -m venv /venv \
    && /venv/bin/pip install --no-cache-dir --constraint /source/constraints.txt '/source[encoders,web]'

FROM python:3.11-slim
RUN useradd --system --create-home --uid 10001 qkvsearch
COPY --from=build /venv /venv
USER 10001
ENV PATH=/venv/bin:$PATH QKVSEARCH_WORKSPACE=/workspace PYTHONUNBUFFERED=1
EXPOSE 8000
HEALTHCHECK CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://127.0.0.1:8000/api/v1/health')"]
ENTRYPOINT ["qkvsearch"]
CMD ["serve", "--host", "0.0.0.0", "--token-file", "/run/secrets/token", "--read-only"]
