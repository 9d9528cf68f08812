# Bandit Playground in a container: docker build -t bandit-playground . && docker run -p 8501:8501 -v bandits:/data bandit-playground
FROM python:3.11-slim

# The CPU build of torch is a layer of its own: it is large and changes seldom.
ARG TORCH_INDEX=https://download.pytorch.org/whl/cpu
ARG TORCH_OPTIONS=--no-deps
WORKDIR /app
COPY requirements.txt requirements.lock ./
RUN pip install --no-cache-dir $TORCH_OPTIONS --index-url "$TORCH_INDEX" "$(grep '^torch==' requirements.txt)"
# No second index, from which a name could come too: all else, what torch needs included, by version and hash.
RUN pip install --no-cache-dir --require-hashes -r requirements.lock

COPY app.py ./
COPY .streamlit .streamlit
COPY pages pages
COPY bandits_app bandits_app
COPY bandits bandits

RUN useradd --create-home --uid 1000 bandits && mkdir /data && chown -R bandits /data /app
USER bandits
ENV BANDITS_HOME=/data \
    PYTHONUNBUFFERED=1
VOLUME /data
# Compile the kernels once, while the image is built.
RUN python -c "from bandits.runtime import kernels; any(map(kernels.compile_for, kernels.USUAL))"

EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD python -c "import urllib.request as u; u.urlopen('http://127.0.0.1:8501/_stcore/health', timeout=4)"
# Inside the container every address must be served; which of them the outside reaches is decided by -p.
CMD ["python", "-m", "streamlit", "run", "app.py", "--server.address", "0.0.0.0", "--server.port", "8501", "--server.headless", "true"]
