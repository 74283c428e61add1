import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.OutputStream;
import java.io.PrintWriter;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.Attributes;
import java.util.jar.JarEntry;
import java.util.jar.JarOutputStream;
import java.util.jar.Manifest;
import java.util.zip.Deflater;
import javax.lang.model.element.Element;
import javax.lang.model.element.ExecutableElement;
import javax.lang.model.element.Modifier;
import javax.lang.model.element.TypeElement;
import javax.lang.model.type.TypeKind;
import javax.lang.model.util.ElementFilter;
import javax.tools.FileObject;
import javax.tools.ForwardingJavaFileManager;
import javax.tools.JavaFileManager;
import javax.tools.JavaFileObject;
import javax.tools.SimpleJavaFileObject;
import javax.tools.ToolProvider;
import com.sun.source.util.JavacTask;
import com.sun.source.util.TaskEvent;
import com.sun.source.util.TaskListener;

/**
 * Compiles one Java source into a jar that `java -jar` runs: java Compile SOURCE JAR.
 *
 * javac wants a public class in a file of its name, and a jar wants a word on where to start. Here the source is a file
 * object that any class may lie in, and the class to start is the first that has a main method, a public one before
 * others. One JVM instead of two, and no class file on disk.
 */
public final class Compile {
    private static final class Source extends SimpleJavaFileObject {
        private final String text;

        Source(Path path, String text) {
            super(path.toUri(), Kind.SOURCE);
            this.text = text;
        }

        @Override
        public CharSequence getCharContent(boolean ignoreEncodingErrors) {
            return text;
        }

        @Override
        public boolean isNameCompatible(String simpleName, Kind kind) {
            return kind == Kind.SOURCE;
        }
    }

    private static final class Output extends SimpleJavaFileObject {
        final ByteArrayOutputStream bytes = new ByteArrayOutputStream();

        Output(String className) {
            super(URI.create("memory:///" + className.replace('.', '/') + ".class"), Kind.CLASS);
        }

        @Override
        public OutputStream openOutputStream() {
            return bytes;
        }
    }

    private static final class Memory extends ForwardingJavaFileManager<JavaFileManager> {
        final Map<String, Output> classes = new HashMap<>();

        Memory(JavaFileManager below) {
            super(below);
        }

        @Override
        public JavaFileObject getJavaFileForOutput(
                Location location, String className, JavaFileObject.Kind kind, FileObject sibling) {
            return classes.computeIfAbsent(className, Output::new);
        }
    }

    /** Whether a class can be started as it stands: `public static void main(String[])`. */
    private static boolean starts(TypeElement type) {
        for (ExecutableElement method : ElementFilter.methodsIn(type.getEnclosedElements())) {
            if (method.getSimpleName().contentEquals("main")
                    && method.getModifiers().contains(Modifier.STATIC)
                    && method.getModifiers().contains(Modifier.PUBLIC)
                    && method.getReturnType().getKind() == TypeKind.VOID
                    && method.getParameters().size() == 1
                    && method.getParameters().get(0).asType().toString().endsWith("String[]")) {
                return true;
            }
        }
        return false;
    }

    private static void collect(Element element, String prefix, List<String> starting) {
        if (!(element instanceof TypeElement)) {
            return;
        }
        TypeElement type = (TypeElement) element;
        String name = prefix.isEmpty() ? type.getQualifiedName().toString() : prefix + "$" + type.getSimpleName();
        if (starts(type)) {
            starting.add((type.getModifiers().contains(Modifier.PUBLIC) && prefix.isEmpty() ? "0" : "1") + name);
        }
        for (Element inner : type.getEnclosedElements()) {
            collect(inner, name, starting);
        }
    }

    public static void main(String[] arguments) throws IOException {
        Path path = Path.of(arguments[0]);
        // This decoder replaces what is not UTF-8: a stray byte in a comment is no reason to refuse a program.
        String text = new String(Files.readAllBytes(path), StandardCharsets.UTF_8);
        var compiler = ToolProvider.getSystemJavaCompiler();
        var manager = new Memory(compiler.getStandardFileManager(null, null, null));
        List<String> options = List.of("-nowarn", "-proc:none", "-g:source,lines", "-Xmaxerrs", "20");
        PrintWriter errors = new PrintWriter(System.err, true);
        JavacTask task = (JavacTask) compiler.getTask(errors, manager, null, options, null, List.of(new Source(path, text)));
        List<String> starting = new ArrayList<>();
        task.addTaskListener(new TaskListener() {
            @Override
            public void finished(TaskEvent event) {
                if (event.getKind() == TaskEvent.Kind.ANALYZE && event.getTypeElement() != null) {
                    collect(event.getTypeElement(), "", starting);
                }
            }
        });
        if (!task.call()) {
            System.exit(1);
        }
        if (starting.isEmpty()) {
            System.err.println("no class has a method: public static void main(String[])");
            System.exit(1);
        }
        String first = starting.stream().filter(name -> name.startsWith("0")).findFirst().orElse(starting.get(0));
        Manifest manifest = new Manifest();
        manifest.getMainAttributes().put(Attributes.Name.MANIFEST_VERSION, "1.0");
        manifest.getMainAttributes().put(Attributes.Name.MAIN_CLASS, first.substring(1));
        try (JarOutputStream jar = new JarOutputStream(Files.newOutputStream(Path.of(arguments[1])), manifest)) {
            jar.setLevel(Deflater.NO_COMPRESSION);
            for (Map.Entry<String, Output> entry : manager.classes.entrySet()) {
                jar.putNextEntry(new JarEntry(entry.getKey().replace('.', '/') + ".class"));
                entry.getValue().bytes.writeTo(jar);
                jar.closeEntry();
            }
        }
    }
}
